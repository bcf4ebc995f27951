"""Make persons whose facts are known, and questions about them: the data of the memory measure.

A person is some twenty facts, drawn with a seed from the tables below. Each fact has a statement, a
direct question (which shares a word with it), a paraphrase (which shares none that tells anything),
and, where its kind has one value at a time, an update in other words. Questions that no fact answers
are common to all: trivia, code, travel, cooking, sums. Pure: the same seed gives the same persons.
"""

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True)
class FactTemplate:
    """One kind of fact: `{}` stands for its value. Without `update` both values can be true."""

    statement: str
    values: tuple[str, ...]
    direct: str
    paraphrase: str
    update: str = ""


@dataclass(frozen=True, slots=True)
class PersonFact:
    """A fact of one person; `update`, if there is one, makes `statement` untrue."""

    statement: str
    direct: str
    paraphrase: str
    update: str = ""


@dataclass(frozen=True, slots=True)
class Person:
    """A person with their facts, in one language."""

    language: str
    facts: Sequence[PersonFact]


FACTS_EACH: Final = 20
"""Enough that the right one must be chosen, and few enough for a few months of talking."""

_T = FactTemplate
ENGLISH: Final = (
    _T(
        "my landlord is {}",
        ("Mr. Novak", "Mrs. Ortega", "Paul Whitfield"),
        "Who is my landlord?",
        "Whom do I pay the rent to?",
        "my new landlord is {}",
    ),
    _T(
        "my boss is {}",
        ("Anna Keller", "Tom Brady", "Ms. Duval"),
        "What is the name of my boss?",
        "Who do I report to at the office?",
        "my boss is now {}",
    ),
    _T(
        "my dentist is {}",
        ("Dr. Meyer", "Dr. Okafor", "Dr. Lindqvist"),
        "Which dentist do I go to?",
        "Who takes care of my teeth?",
        "I have a new dentist, {}",
    ),
    _T(
        "my doctor is {}",
        ("Dr. Hansen", "Dr. Rossi", "Dr. Patel"),
        "Who is my doctor?",
        "Which physician should I call when I am ill?",
        "{} is my new doctor",
    ),
    _T(
        "my wife is called {}",
        ("Clara", "Miriam", "Yasmin"),
        "What is my wife called?",
        "Who am I married to?",
    ),
    _T(
        "my employer is {}",
        ("Siemens", "Globex", "Acme Logistics"),
        "Who is my employer?",
        "Which company pays my salary?",
        "I now work for {}",
    ),
    _T(
        "my address is {}",
        ("12 Mill Lane", "7 Harbour Road", "98 Elm Street"),
        "What is my address?",
        "Where should a parcel for me be delivered?",
        "my new address is {}",
    ),
    _T(
        "my phone number is {}",
        ("555 0134", "555 0177", "555 0192"),
        "What is my phone number?",
        "How can people reach me by call?",
        "my phone number has changed to {}",
    ),
    _T(
        "I live in {}",
        ("Oslo", "Lisbon", "Krakow"),
        "Which city do I live in?",
        "Where is my home?",
        "I moved to {}",
    ),
    _T(
        "my favourite colour is {}",
        ("teal", "orange", "violet"),
        "What is my favourite colour?",
        "Which shade do I like most?",
        "my favourite colour is {} now",
    ),
    _T(
        "my birthday is on {}",
        ("3 May", "19 October", "27 January"),
        "When is my birthday?",
        "On which day was I born?",
    ),
    _T(
        "I am allergic to {}",
        ("peanuts", "shellfish", "penicillin"),
        "What am I allergic to?",
        "Is there anything I must not eat or take?",
    ),
    _T(
        "my cat is called {}",
        ("Biscuit", "Momo", "Pepper"),
        "What is my cat called?",
        "What did I name my kitty?",
    ),
    _T(
        "my sister {} plays the cello",
        ("Laura", "Ines", "Hannah"),
        "What does my sister play?",
        "Is anybody among my siblings a musician?",
    ),
    _T("I drive a {}", ("Volvo", "Skoda", "Toyota"), "What do I drive?", "Which car do I have?"),
    _T(
        "I work as a {}",
        ("plumber", "nurse", "surveyor"),
        "What do I work as?",
        "What is my profession?",
    ),
    _T(
        "I am learning {}",
        ("Portuguese", "Finnish", "Japanese"),
        "Which language am I learning?",
        "What am I studying in the evenings?",
    ),
    _T(
        "I go running every {}",
        ("Tuesday", "Saturday", "Thursday"),
        "When do I go running?",
        "On which days do I jog?",
    ),
    _T(
        "our wedding is planned for {}",
        ("June 2027", "September 2027", "April 2028"),
        "When is our wedding planned?",
        "When are we getting married?",
    ),
    _T(
        "my son goes to {}",
        ("Hillcrest Primary", "Saint Brendan's", "the Montessori kindergarten"),
        "Where does my son go?",
        "Which school does my boy attend?",
    ),
    _T(
        "I prefer {} in the morning",
        ("black coffee", "green tea", "cocoa"),
        "What do I prefer in the morning?",
        "Which drink do I like for breakfast?",
    ),
    _T(
        "I do not eat {}",
        ("meat", "pork", "gluten"),
        "What do I not eat?",
        "Which foods are off limits in my diet?",
    ),
    _T(
        "my thesis is about {}",
        ("glacier melt", "medieval trade", "protein folding"),
        "What is my thesis about?",
        "What is the topic of the dissertation I am writing?",
    ),
    _T(
        "I am flying to {} in March",
        ("Lima", "Seoul", "Nairobi"),
        "Where am I flying in March?",
        "What trip have I booked for the spring?",
    ),
    _T(
        "my shoe size is {}",
        ("41", "44", "38"),
        "What is my shoe size?",
        "How large are my feet?",
        "my shoe size is {} now",
    ),
    _T(
        "my therapist is {}",
        ("Dr. Blum", "Ms. Achterberg", "Dr. Singh"),
        "Who is my therapist?",
        "Whom do I see for counselling?",
        "my therapist is {} now",
    ),
    _T(
        "I broke my {} last winter",
        ("wrist", "ankle", "collarbone"),
        "What did I break last winter?",
        "Which bone of mine was fractured?",
    ),
    _T(
        "I support {}",
        ("Arsenal", "Celtic", "Ajax"),
        "Which club do I support?",
        "Who is my football team?",
    ),
    _T(
        "my laptop is a {}",
        ("ThinkPad", "MacBook Air", "Framework"),
        "What laptop do I have?",
        "Which notebook computer do I use?",
    ),
    _T(
        "I sleep badly because of {}",
        ("the trains", "the neighbours", "my back"),
        "Why do I sleep badly?",
        "What keeps me awake at night?",
    ),
)

CHINESE: Final = (
    _T(
        "我的房东是{}",
        ("王先生", "李女士", "陈建国"),
        "我的房东是谁？",
        "我每个月把租金交给谁？",
        "我的新房东是{}",
    ),
    _T(
        "我的老板叫{}",
        ("张伟", "刘芳", "赵敏"),
        "我的老板叫什么？",
        "我在单位向哪位汇报？",
        "我的老板现在是{}",
    ),
    _T(
        "我的牙医是{}",
        ("林医生", "周大夫", "郭医生"),
        "我的牙医是谁？",
        "平时谁给我看牙齿？",
        "我换了牙医，现在是{}",
    ),
    _T(
        "我的家庭医生是{}",
        ("孙医生", "何大夫", "马医生"),
        "我的家庭医生是谁？",
        "我生病了该找哪位大夫？",
        "我的新家庭医生是{}",
    ),
    _T("我的妻子叫{}", ("小梅", "佳佳", "雨欣"), "我的妻子叫什么？", "我和谁结了婚？"),
    _T(
        "我的公司是{}",
        ("远航物流", "蓝海科技", "华星集团"),
        "我的公司是哪家？",
        "谁给我发工资？",
        "我的公司现在是{}",
    ),
    _T(
        "我的地址是{}",
        ("中山路12号", "和平街7号", "人民路98号"),
        "我的地址是什么？",
        "快递应该寄到哪儿给我？",
        "我的新地址是{}",
    ),
    _T(
        "我的电话号码是{}",
        ("13900001234", "13800005678", "13700009012"),
        "我的电话号码是多少？",
        "别人怎么打给我？",
        "我的电话号码改成了{}",
    ),
    _T("我住在{}", ("成都", "青岛", "厦门"), "我住在哪里？", "我的家在哪座城市？", "我搬到了{}"),
    _T(
        "我最喜欢的颜色是{}",
        ("青色", "橙色", "紫色"),
        "我最喜欢的颜色是什么？",
        "我偏爱哪种色调？",
        "我最喜欢的颜色现在是{}",
    ),
    _T(
        "我的生日是{}",
        ("五月三日", "十月十九日", "一月二十七日"),
        "我的生日是哪天？",
        "我是几月几号出生的？",
    ),
    _T("我对{}过敏", ("花生", "海鲜", "青霉素"), "我对什么过敏？", "有什么东西我不能碰？"),
    _T("我的猫叫{}", ("小白", "团子", "可可"), "我的猫叫什么？", "我给喵星人起了什么名？"),
    _T("我姐姐{}会拉大提琴", ("晓玲", "婷婷", "文静"), "我姐姐会拉什么？", "我家里谁是玩乐器的？"),
    _T("我开的车是{}", ("沃尔沃", "比亚迪", "丰田"), "我开的车是什么？", "我驾驶哪个品牌？"),
    _T("我的职业是{}", ("护士", "水管工", "会计"), "我的职业是什么？", "我靠什么谋生？"),
    _T("我正在学{}", ("葡萄牙语", "芬兰语", "日语"), "我正在学什么？", "我晚上在进修哪门外文？"),
    _T("我每周{}去跑步", ("二", "六", "四"), "我每周哪天去跑步？", "我什么时候慢跑锻炼？"),
    _T(
        "我们的婚礼定在{}",
        ("明年六月", "明年九月", "后年四月"),
        "我们的婚礼定在什么时候？",
        "我和未婚妻几时结婚？",
    ),
    _T(
        "我儿子上{}",
        ("实验小学", "阳光幼儿园", "第三小学"),
        "我儿子上哪儿？",
        "孩子在哪所学校读书？",
    ),
    _T(
        "我早上喜欢喝{}",
        ("黑咖啡", "绿茶", "豆浆"),
        "我早上喜欢喝什么？",
        "早餐配哪种饮料合我口味？",
    ),
    _T("我不吃{}", ("猪肉", "牛肉", "香菜"), "我不吃什么？", "我的饮食有什么忌口？"),
    _T(
        "我的论文写的是{}",
        ("冰川融化", "宋代贸易", "蛋白质折叠"),
        "我的论文写的是什么？",
        "我做的学术研究是哪个题目？",
    ),
    _T(
        "我三月要飞{}",
        ("利马", "首尔", "内罗毕"),
        "我三月要飞哪里？",
        "我春天订了去什么地方的旅行？",
    ),
    _T(
        "我的鞋码是{}", ("41", "44", "38"), "我的鞋码是多少？", "我的脚有多大？", "我的鞋码现在是{}"
    ),
    _T(
        "我的心理咨询师是{}",
        ("方老师", "许医生", "冯女士"),
        "我的心理咨询师是谁？",
        "我情绪不好的时候找谁谈？",
        "我的心理咨询师现在是{}",
    ),
    _T("我去年冬天摔断了{}", ("手腕", "脚踝", "锁骨"), "我去年冬天摔断了什么？", "我哪里骨折过？"),
    _T(
        "我支持的球队是{}",
        ("国安", "申花", "泰山队"),
        "我支持的球队是哪支？",
        "我是哪家足球俱乐部的粉丝？",
    ),
    _T(
        "我的笔记本电脑是{}",
        ("联想", "苹果", "华为"),
        "我的笔记本电脑是什么牌子？",
        "我用哪种手提计算机？",
    ),
    _T(
        "我失眠是因为{}",
        ("楼上的噪音", "工作压力", "腰疼"),
        "我失眠是因为什么？",
        "我夜里为什么睡不着？",
    ),
)

UNRELATED: Final[Mapping[str, Sequence[str]]] = {
    "en": (
        "What is the capital of Australia?",
        "How do I reverse a linked list in Python?",
        "Who wrote War and Peace?",
        "What is the best time of year to visit Japan?",
        "Explain how photosynthesis works.",
        "How many planets are in the solar system?",
        "Write a haiku about autumn leaves.",
        "What is the difference between TCP and UDP?",
        "How long should I boil an egg?",
        "Translate 'good evening' into Italian.",
        "What is 17 percent of 340?",
        "Who painted the Mona Lisa?",
        "How does a heat pump work?",
        "What are good museums in Paris?",
        "Why is the sky blue?",
        "How do I center a div with CSS?",
        "Summarise the plot of Hamlet.",
        "What is the boiling point of nitrogen?",
        "Which country has won the most World Cups?",
        "Give me a recipe for tomato soup.",
        "How do I write a unit test in Go?",
        "What does the word 'ubiquitous' mean?",
        "When did the Second World War end?",
        "What is the name of the tallest mountain in the world?",
        "How can I get a red wine stain out of a carpet?",
        "What is the time difference between New York and London?",
        "Which language has the most native speakers?",
        "How do vaccines work?",
        "Can you explain recursion to me?",
        "What is a good name for a bakery?",
        "How many people live in Canada?",
        "What year was the telephone invented?",
        "How do I delete a branch in git?",
        "What is the fastest way to get from Rome to Naples?",
        "Who is the president of France?",
        "What are the symptoms of the flu?",
        "How do I convert a string to a number in JavaScript?",
        "What is the meaning of the number 42?",
        "Is a tomato a fruit or a vegetable?",
        "How do I open a jar that is stuck?",
        "Which song was number one in 1985?",
        "What causes earthquakes?",
        "How do I calculate the area of a circle?",
        "Write a polite reply to a customer who wants a refund.",
        "What is the exchange rate of the euro?",
        "Tell me a joke about penguins.",
        "How much does it cost to build a house?",
        "What is a black hole?",
        "How do I read a CSV file with pandas?",
        "Which trees lose their leaves in winter?",
        "What is inflation?",
        "How far is the Moon from the Earth?",
        "What should I see in Barcelona in three days?",
        "Which is the largest ocean?",
        "How do I change a flat tyre?",
        "What is the plural of 'octopus'?",
        "Who discovered America?",
        "What is the chemical symbol for gold?",
        "How do I set up a virtual environment?",
        "What was the first film by Stanley Kubrick?",
    ),
    "zh": (
        "澳大利亚的首都是哪里？",
        "怎么用Python反转链表？",
        "《战争与和平》是谁写的？",
        "什么时候去日本旅游最好？",
        "请解释光合作用。",
        "太阳系有几颗行星？",
        "写一首关于秋天的诗。",
        "TCP和UDP有什么区别？",
        "鸡蛋要煮多久？",
        "“晚上好”用意大利语怎么说？",
        "340的百分之十七是多少？",
        "蒙娜丽莎是谁画的？",
        "热泵是怎么工作的？",
        "巴黎有哪些好的博物馆？",
        "天空为什么是蓝色的？",
        "CSS怎么让元素居中？",
        "概括一下《哈姆雷特》的情节。",
        "氮气的沸点是多少？",
        "哪个国家赢得世界杯最多？",
        "番茄汤怎么做？",
        "Go语言怎么写单元测试？",
        "“无处不在”是什么意思？",
        "第二次世界大战是什么时候结束的？",
        "世界上最高的山叫什么名字？",
        "地毯上的红酒渍怎么清洗？",
        "纽约和伦敦的时差是多少？",
        "哪种语言的母语人口最多？",
        "疫苗是如何起作用的？",
        "能给我讲讲递归吗？",
        "面包店起什么名字好？",
        "加拿大有多少人口？",
        "电话是哪一年发明的？",
        "git怎么删除分支？",
        "从罗马到那不勒斯最快怎么走？",
        "法国总统是谁？",
        "流感有哪些症状？",
        "JavaScript怎么把字符串转成数字？",
        "数字42有什么含义？",
        "西红柿是水果还是蔬菜？",
        "瓶盖拧不开怎么办？",
        "1985年最流行的歌是哪首？",
        "地震是怎么发生的？",
        "圆的面积怎么算？",
        "帮我写一封回复客户退款的邮件。",
        "今天欧元的汇率是多少？",
        "讲一个关于企鹅的笑话。",
        "盖一栋房子要多少钱？",
        "什么是黑洞？",
        "怎么用pandas读取CSV文件？",
        "哪些树冬天会落叶？",
        "什么是通货膨胀？",
        "月球离地球有多远？",
        "在巴塞罗那玩三天有什么推荐？",
        "最大的海洋是哪个？",
        "怎么更换汽车轮胎？",
        "“章鱼”用英语怎么说？",
        "是谁发现了美洲大陆？",
        "金的化学符号是什么？",
        "虚拟环境怎么配置？",
        "库布里克的第一部电影是什么？",
    ),
}
"""What no fact above answers, though some share a word with one."""

LANGUAGES: Final = {"en": ENGLISH, "zh": CHINESE}

TOLD_OTHERWISE: Final[Mapping[str, Sequence[tuple[str, str]]]] = {
    "en": (
        (
            "my landlord is Mr. Novak",
            "The house was sold. From May on the rent goes to a Mrs. Ortega.",
        ),
        (
            "my boss is Anna Keller",
            "They promoted Anna, so at the office I report to Tom from now on.",
        ),
        (
            "my dentist is Dr. Meyer",
            "I had a tooth out today, Dr. Okafor did it; I am staying with her.",
        ),
        ("my employer is Siemens", "I quit! Globex made me a better offer and I start on Monday."),
        (
            "my address is 12 Mill Lane",
            "We finally found a new flat, in Harbour Road, and got the keys.",
        ),
        (
            "my phone number is 555 0134",
            "I lost my SIM card. You can call me under 555 0177 instead.",
        ),
        (
            "I live in Oslo",
            "The boxes are unpacked: hello from Lisbon, our home for the next years!",
        ),
        ("my partner is Sam", "Sam and I broke up. I am dating Alex."),
        (
            "I prefer black coffee in the morning",
            "My stomach hates coffee lately, so it is green tea in the morning.",
        ),
        ("I am allergic to peanuts", "The new test says that I can eat peanuts again."),
        ("I go running every Tuesday", "My running group meets on Saturday from this week on."),
        ("I do not eat meat", "Since the summer I eat meat again."),
    ),
    "zh": (
        ("我的房东是王先生", "房子卖掉了，从五月起房租交给李女士。"),
        ("我的老板叫张伟", "张伟升职了，我在公司改向刘芳汇报。"),
        ("我的牙医是林医生", "今天拔了一颗牙，是周大夫做的，以后都找她看牙。"),
        ("我的公司是远航物流", "我辞职了！蓝海科技给的条件更好，下周一上班。"),
        ("我的地址是中山路12号", "我们终于租到了新房，在和平街，钥匙已经拿到了。"),
        ("我的电话号码是13900001234", "手机卡丢了，以后打13800005678联系我。"),
        ("我住在成都", "东西都拆箱了，青岛就是我们的新家。"),
        ("我的女朋友是小梅", "我和小梅分手了，现在和佳佳在一起。"),
        ("我早上喜欢喝黑咖啡", "最近胃不好，早上改喝绿茶了，不喝咖啡。"),
        ("我对花生过敏", "新的检查说我可以吃花生了。"),
        ("我每周二去跑步", "跑步小组从这周起改到周六。"),
        ("我不吃猪肉", "从夏天开始我又吃猪肉了。"),
    ),
}
"""What a person knows to be true, and what they say later in words that only a model understands."""

FILLERS: Final[Mapping[str, Sequence[str]]] = {
    "en": tuple(
        f"I own a {how} {what}"
        for how in ("wooden", "green", "rusty", "tiny", "striped", "broken", "folding", "antique")
        for what in (
            "lamp",
            "chair",
            "kettle",
            "umbrella",
            "violin case",
            "globe",
            "ladder",
            "vase",
        )
    ),
    "zh": tuple(
        f"我有一个{how}的{what}"
        for how in ("木头", "绿色", "生锈", "很小", "条纹", "坏了", "折叠", "古董")
        for what in ("台灯", "椅子", "水壶", "雨伞", "琴盒", "地球仪", "梯子", "花瓶")
    ),
}
"""What else a person owns: more facts than a model is shown."""


def make_persons(language: str, count: int, *, seed: int = 13) -> list[Person]:
    """Return persons of one language, each with FACTS_EACH facts of different kinds."""
    drawn = random.Random(f"{seed}:{language}")
    return [
        Person(
            language, [_make_fact(t, drawn) for t in drawn.sample(LANGUAGES[language], FACTS_EACH)]
        )
        for _ in range(count)
    ]


def _make_fact(template: FactTemplate, drawn: random.Random) -> PersonFact:
    value, other = drawn.sample(template.values, 2)
    return PersonFact(
        template.statement.format(value),
        template.direct,
        template.paraphrase,
        template.update.format(other) if template.update else "",
    )
