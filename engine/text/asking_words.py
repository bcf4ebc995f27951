"""List the words by which people ask: they say what kind of answer is wanted, not what it is about.

"What is the name of", "how long", "what kind of", "what happened": such a word need not have been said
for a question to be about what was. English, German, Russian, Arabic and Chinese (as pairs of
characters, as they are indexed). Pure.
"""

from typing import Final

_WORDS: Final = """
name named names kind kinds type types sort sorts many much long often far old happen happened
happens happening call called take took takes taken place time times use used uses using whose thing
things anything something someone anyone anybody ever person people reason way ways example examples
mention mentioned tell told talk talked remember describe according currently recently usually
specific particular main different various get got give gave given make made go went come came

was wer wie wo wann warum wieso weshalb welche welcher welches welchen welchem wem wen wessen wohin
woher womit wofür worüber heißt hieß nennt genannt gibt gab passiert passierte eigentlich genau
der die das ein eine einen einem einer und oder in im am an auf für mit von zu zum zur bei nach
ist sind war waren hat haben hatte habe du ich er sie es wir mein meine meinen meiner dein deine deinen
mir mich dir dich sich noch mal denn wird wurde als auch nicht den dem des über

какой какая какое какие какого какую каком каким каких когда где кто что кого чего чему почему зачем
сколько как куда откуда чем чей чья чьё кому ком называется зовут звали случилось произошло
я ты он она мы вы они мой моя моё мои моего моей мою мне меня тебе тебя твой у в на с к по из за о об
от для до и или а не был была было были есть это этот эта его её их ли бы же

متى أين من ماذا ما كم كيف لماذا هل أي اسم حدث الذي التي في على إلى عن مع هو هي كان كانت أنا أنت لي
هذا هذه ذلك قد لقد

什么 么时 时候 哪里 哪个 哪些 哪位 哪种 哪一 多少 怎么 怎样 如何 为什 为何 是谁 谁的 几个 几次 叫什 名字 是什
是哪 是多 有什 有哪 有多 多久 多大 多长 么样 样的 何时 何地 请问 我的 你的 他的 她的 我们 你们 他们 的什
"""
ASKING_WORDS: Final = frozenset(_WORDS.split())

CHINESE_FUNCTION_CHARACTERS: Final = frozenset(
    "的了是在和与吗呢吧么什哪谁怎几有不我你他她它们这那就都也很到要去会着没之及或从对为以所而但被把让给跟比用多少个一"
)
"""Chinese has no spaces, and is indexed by pairs of characters. A pair with one of these is grammar, or the
seam beside it, and not what a question is about."""
