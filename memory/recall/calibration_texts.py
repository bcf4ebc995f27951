"""Hold the texts by which an embedder's sense of nearness is measured, for each script.

Facts as people state them, for each a question that it answers in other words, and questions that none
of them answers. None is a text of `bench.quality`: what is measured there was not fitted here.
"""

from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True)
class CalibrationTexts:
    """`answered[i]` is answered by `facts[i]`; `unanswered` by none of them."""

    facts: tuple[str, ...]
    answered: tuple[str, ...]
    unanswered: tuple[str, ...]

    @property
    def all(self) -> list[str]:
        return [*self.facts, *self.answered, *self.unanswered]


LATIN: Final = CalibrationTexts(
    facts=(
        "The user's brother is a pilot",
        "my hamster is called Nibbles",
        "I grew up in Denver",
        "The user is vegetarian",
        "my accountant is Mrs. Fields",
        "I play tennis on Mondays",
        "The user has two children",
        "my favourite film is Casablanca",
        "I am employed by a law firm",
        "my email is sam@example.com",
        "I am saving for a motorbike",
        "The user is afraid of heights",
    ),
    answered=(
        "What does my sibling do for a living?",
        "What did I name my pet?",
        "Where did I spend my childhood?",
        "Could you suggest a dish without meat for me?",
        "Who does my tax return?",
        "Which sport do I do at the start of the week?",
        "How many kids do I have?",
        "Which movie do I like best?",
        "Where do I work?",
        "How can somebody write to me online?",
        "What do I want to buy one day?",
        "Would I enjoy climbing a tower?",
    ),
    unanswered=(
        "What time does the next train to Berlin leave?",
        "How do I sort a dictionary by value?",
        "Who won the Nobel Prize in physics?",
        "What is the population of Brazil?",
        "Write a short poem about the sea.",
        "How is sourdough bread baked?",
        "What is the square root of 144?",
        "Explain the theory of relativity.",
        "Which river flows through Vienna?",
        "How do I fix a leaking tap?",
        "What are the rules of chess?",
        "Correct the grammar of this sentence.",
        "What is a stock option?",
        "Who was the first person on the Moon?",
        "Why does iron rust?",
        "How do I merge two branches?",
        "What is the weather like in Iceland?",
        "Translate this paragraph into Spanish.",
        "How do bees make honey?",
        "When was the printing press invented?",
    ),
)

HAN: Final = CalibrationTexts(
    facts=(
        "用户的哥哥是飞行员",
        "我的仓鼠叫豆豆",
        "我是在昆明长大的",
        "用户吃素",
        "我的会计是田女士",
        "我每周一打网球",
        "用户有两个孩子",
        "我最喜欢的电影是霸王别姬",
        "我受雇于一家律师事务所",
        "我的邮箱是sam@example.com",
        "我在攒钱买摩托车",
        "用户恐高",
    ),
    answered=(
        "我的兄弟做什么职业？",
        "我给宠物起了什么名字？",
        "我的童年是在哪里度过的？",
        "能给我推荐一道没有肉的菜吗？",
        "谁帮我报税？",
        "我在一周的开头做什么运动？",
        "我有几个小孩？",
        "哪部影片我最爱看？",
        "我在哪里工作？",
        "别人怎么在网上给我写信？",
        "我以后想买什么？",
        "我会喜欢爬高塔吗？",
    ),
    unanswered=(
        "下一班去柏林的火车几点开？",
        "怎么按值给字典排序？",
        "谁获得了诺贝尔物理学奖？",
        "巴西有多少人口？",
        "写一首关于大海的短诗。",
        "酸面包是怎么烤的？",
        "144的平方根是多少？",
        "请解释相对论。",
        "哪条河流经维也纳？",
        "水龙头漏水怎么修？",
        "国际象棋的规则是什么？",
        "改正这句话的语法。",
        "什么是股票期权？",
        "第一个登上月球的人是谁？",
        "铁为什么会生锈？",
        "怎么合并两个分支？",
        "冰岛的天气怎么样？",
        "把这段话翻译成西班牙语。",
        "蜜蜂是怎么酿蜜的？",
        "印刷术是什么时候发明的？",
    ),
)
