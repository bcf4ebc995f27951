"""Say how much a word tells of whom a question is about: words of any question tell little.

Among some dozens of memories a word as "work" is as rare as "dentist"; in what people ask it is not. So
beside how rare a word is among the memories it counts how general it is. Pure; English and Chinese.
Other languages go by rarity alone.
"""

from typing import Final

from amber.lib.search.stems import stem
from engine.text.lexical import is_spaceless

GENERAL_WEIGHT: Final = 0.25
"""What a general word weighs where another one weighs 1."""

_GENERAL: Final = """
able add again ago allow already always another answer anyone anything around ask available average away
back bad base become before begin behind being below best better between big both break bring build buy
calculate call case cause change chapter check choose clear close come common compare complete consider
contain convert correct cost could country course create current currently cut data date day decide
define delete describe detail determine difference different difficult do done down draw during
each early easy edit effect either else end english enough even ever every everyone everything exactly
example exist expect explain fact far fast fastest feel few file fill final find fine first fit fix follow
food form free full function further general generate get give given go good got great group grow guide
half hand happen hard help here high highest hold hour however idea important improve include increase
inside instead interesting invent issue item keep kind know known language large largest last late later
latest learn least leave left less let letter level life like line list little live long look lose lot low
main make many match matter maybe mean meaning measure method might minute month more morning move much
must name near need never new next nice night nothing now number off office often old once one only open
order original other otherwise overall own page paragraph part past pay people percent perfect perhaps
person pick piece place plan play please point popular possible prepare present pretty price problem
process produce program provide put quick quickly quite read ready real really reason recent recommend
related remember remove replace reply require rest result return right rule run same save school second
see seem send sentence set several short show side similar simple since single size small solve
someone something sometimes soon sort sound speak specific spend stand start state step still stop story
student study stuff style suggest sum summarise summarize support sure switch system table take talk
teach term test text thank thing think third those though three through time title today together tomorrow
tonight tool top topic total town travel trip try turn two type under understand until update usage use
used useful user usual usually value various version very via visit wait walk want watch way week weekend
well while whole win without word work world worth write written wrong year yes yesterday yet young
city big capital center company famous history president war book film movie song recipe code
"""

_FUNCTION_SIGNS: Final = frozenset(
    "的了是在我你他她它们吗呢吧啊么什怎哪谁几多少个这那有和与及或也都就很不没要会能可以给把被让对为从到"
    "请问用说叫来去上下里中年月日号时候些最更还再又只但而且因所如果何样哦呀嘛过得着一二三两"
)
_PAIRS: Final = """
    名字 时间 地方 方法 问题 东西 事情 推荐 解释 介绍 帮忙 告诉 知道 觉得 喜欢 需要 应该 可能 比较 区别
    意思 原因 世界 国家 城市 中国 今天 明天 昨天 现在 以前 以后 已经 经常 平时 工作 生活 学习 使用 开始
    结束 发明 发现 写一 一首 一个 一下 一些 一种 一封 一篇 人口 首都 最好 最大 最高 最快 最多 多少 几个
    哪里 哪个 哪些 哪家 哪种 哪天 什么 怎么 怎样 如何 为何 为什 是否 可以 能够 用户 翻译 英语 中文 公司
    学校 电话 号码 数字 单词 句子 文章 代码 语言 旅游 旅行 历史 总统 电影 歌曲 牌子 品牌 颜色
"""
_GENERAL_PAIRS: Final = frozenset(_PAIRS.split())

_GENERAL_STEMS: Final = frozenset(
    form for word in _GENERAL.split() for form in (word, stem(word, "en"))
)


def generality(word: str) -> float:
    """Return what a stem, or a pair of characters, weighs: 1, less if any question may hold it."""
    if is_spaceless(word):
        if word in _GENERAL_PAIRS:
            return GENERAL_WEIGHT
        telling = sum(sign not in _FUNCTION_SIGNS for sign in word) / len(word)
        return max(telling, 0.0)
    return GENERAL_WEIGHT if word in _GENERAL_STEMS else 1.0
