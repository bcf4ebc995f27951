"""Embed texts by a table of concepts: a stand-in for an embedding model, where none can be had.

Words of one row of the table lie near to each other, in both languages; every other word has a direction
of its own, and each text some noise. So a paraphrase is near where the table knows its words, and only
there. It has what matters to a threshold: paraphrases below repetitions, unrelated texts that share a
concept by chance, cosines that begin well above zero (as E5's and many others' do). **It is no model**: what
it finds tells that the code does what it should, and nothing of how well a real one would do.
"""

import hashlib
import re
import zlib
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Vectors = NDArray[np.float32]

DIMENSIONS: Final = 256

CONCEPTS: Final = tuple(
    tuple(row.split())
    for row in """
landlord rent lease tenant 房东 租金 租 房租
boss manager report supervisor 老板 上司 汇报 主管
dentist teeth tooth 牙医 牙齿 牙
doctor physician ill medicine sick gp 医生 大夫 生病 看病
wife married marry spouse husband 妻子 结婚 结了婚 老婆 丈夫 爱人
employer company salary employ work wage globex siemens acme firm office 公司 工资 单位 雇主 发工资 事务所 受雇
address parcel deliver street lane road 地址 快递 寄到 街 路
phone telephone call reach number 电话 打给 号码 联系
live home city moved grew childhood settle 住 家 城市 搬 长大 童年
colour shade color hue teal orange violet 颜色 色调 青色 橙色 紫色
birthday born birth 生日 出生
allergic eat take peanut shellfish penicillin 过敏 碰 花生 海鲜 青霉素
cat kitty pet hamster dog named 猫 喵星人 宠物 仓鼠 起名 取名 名字 叫
sister sibling brother siblings 姐姐 家里 兄弟 哥哥
cello musician instrument plays 大提琴 乐器 拉
drive car vehicle volvo skoda toyota motorbike 车 驾驶 开车 汽车 摩托车 品牌
profession job living occupation plumber nurse surveyor pilot 职业 谋生 护士 水管工 会计 飞行员
learning studying language evening portuguese finnish japanese 学 进修 外文 葡萄牙语 芬兰语 日语
running jog sport tennis exercise 跑步 慢跑 锻炼 网球 运动
wedding getting married june 婚礼 未婚妻 结婚
son boy school kindergarten primary children kids child 儿子 孩子 学校 小学 幼儿园 读书 小孩
coffee tea breakfast drink morning cocoa 咖啡 绿茶 早餐 饮料 早上 喝 豆浆
meat pork gluten diet food vegetarian dish 猪肉 牛肉 饮食 忌口 吃素 肉 香菜 菜
thesis dissertation topic writing research 论文 学术 研究 题目
flying trip booked flight spring march 飞 旅行 订 春天 三月
shoe feet size 鞋码 脚 鞋
therapist counselling psychologist 心理咨询师 情绪 谈
broke fractured bone wrist ankle collarbone 摔断 骨折 手腕 脚踝 锁骨
support club football team arsenal celtic ajax 球队 足球 粉丝 俱乐部
laptop notebook computer thinkpad macbook framework 笔记本电脑 计算机 手提
sleep awake night insomnia 失眠 睡不着 夜里
film movie casablanca 电影 影片 霸王别姬
email online write mail 邮箱 写信 网上
accountant tax return 会计 报税
saving buy want 攒钱 买
heights climbing tower afraid 恐高 爬 高塔
monday week start weekday tuesday thursday saturday 周 星期 一周
code python git css javascript function branch pandas csv string 代码 链表 字典 分支 元素 单元测试 虚拟环境
capital country president population world history war 首都 国家 总统 人口 世界 历史 大战
physics chemistry gold nitrogen moon planet earth photosynthesis 物理 化学 氮气 月球 行星 光合作用 黑洞
soup recipe boil egg bake bread tomato 汤 煮 鸡蛋 烤 面包 番茄
poem haiku song painting novel hamlet 诗 歌 画 情节
""".strip().splitlines()
)

_WORD: Final = re.compile(r"[a-z]+|\d+|[\u4e00-\u9fff]+")
_DULL: Final = frozenset(
    [
        "the",
        "a",
        "an",
        "is",
        "are",
        "was",
        "were",
        "what",
        "which",
        "who",
        "whom",
        "how",
        "why",
        "when",
        "where",
        "do",
        "does",
        "did",
        "i",
        "my",
        "me",
        "we",
        "our",
        "to",
        "of",
        "in",
        "on",
        "at",
        "for",
        "and",
        "or",
        "it",
        "this",
        "that",
        "with",
        "from",
        "by",
        "be",
        "can",
        "could",
        "should",
        "would",
        "user",
        "s",
        "t",
    ]
)
_DULL_SIGNS: Final = re.compile(r"[的了是在我你吗呢什么怎哪谁几多少个这那请给用户]+")
_COMMON_SHARE: Final = 0.45
_NOISE: Final = 0.25
_OWN_WORD: Final = 0.6


class ConceptEmbedder:
    """Embeds by CONCEPTS; the same vectors in every process."""

    def __init__(self) -> None:
        self._concepts = {word: row for row, words in enumerate(CONCEPTS) for word in words}

    def embed(self, texts: Sequence[str]) -> "Vectors":
        """Return (n, DIMENSIONS) float32, L2-normalised."""
        import numpy as np

        if not texts:
            return np.zeros((0, DIMENSIONS), np.float32)
        return np.stack([self._vector(text.casefold()) for text in texts]).astype(np.float32)

    def _vector(self, text: str) -> "NDArray[np.float64]":
        import numpy as np

        meaning = np.zeros(DIMENSIONS)
        for concept in sorted(self._concepts_in(text)):
            meaning += _direction(f"concept {concept}")
        for word in dict.fromkeys(_own_words(text)):
            meaning += _OWN_WORD * _direction(word)
        norm = float(np.linalg.norm(meaning)) or 1.0
        vector = meaning / norm + _NOISE * _direction(f"noise {text}")
        vector = vector / float(np.linalg.norm(vector)) + _COMMON_SHARE * _direction("every text")
        result: NDArray[np.float64] = vector / float(np.linalg.norm(vector))
        return result

    def _concepts_in(self, text: str) -> set[int]:
        found = {row for word, row in self._concepts.items() if not word.isascii() and word in text}
        for word in _WORD.findall(text):
            row = self._concepts.get(word, self._concepts.get(word.removesuffix("s")))
            if row is not None:
                found.add(row)
        return found


def _own_words(text: str) -> list[str]:
    found = []
    for word in _WORD.findall(text):
        if word.isascii():
            found += [word] if word not in _DULL else []
        else:
            found += [part for part in _DULL_SIGNS.split(word) if part]
    return found


def _direction(name: str) -> "NDArray[np.float64]":
    import numpy as np

    seed = zlib.crc32(hashlib.blake2b(name.encode(), digest_size=8).digest())
    drawn = np.random.default_rng(seed).normal(size=DIMENSIONS)
    direction: NDArray[np.float64] = drawn / np.linalg.norm(drawn)
    return direction
