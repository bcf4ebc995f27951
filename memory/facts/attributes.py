"""Read what a statement gives the one value of: the user's dentist, address, employer, favourite colour.

Of such a thing a new statement makes the old one untrue. What can be true beside another value is no
attribute: friends, children, hobbies; a description ("my boss is nice", "my landlord is from Rome"); a
further one ("I also work for …"); one of the past ("my old address was …"). So of people, and of where one
works or lives, only a name counts as the value.

It reads English and Chinese by patterns, as statements are worded; what it does not understand is None,
and then both stay. Pure.
"""

import re
import unicodedata
from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True)
class Attribute:
    """`subject` says of what, in one form for its synonyms; `value` is as it was written."""

    subject: str
    value: str

    def is_other_value_of(self, other: "Attribute") -> bool:
        """Return whether both tell of the same thing, and neither value is a part of the other.

        "Dr. Meyer" and "Dr. Anna Meyer" are one dentist, "Berlin" and "Berlin, Germany" one place.
        """
        mine, yours = _parts(self.value), _parts(other.value)
        return self.subject == other.subject and not (mine <= yours or yours <= mine)


_MINE: Final = r"(?:my|our|the user['’]s|user['’]s)"
_ME: Final = r"(?:i|we|the user|user)"
_OF: Final = r"(?:[\w-]+ ){0,2}?[\w-]+['’]s "
"""Whose it is, if not the user's own: "my sister's", "my daughter Anna's"."""

_KIND: Final = r"(?:[\w-]+ ){0,2}?"
"""Which of several: "eye doctor", "work phone number"."""

_NEWLY: Final = r"(?:(?:new|current|present) )?"
_IS: Final = r"(?: is| are|['’]s| has changed to| changed to| will be)(?: now| currently)?(?: called| named)? "

_PEOPLE: Final = (
    r"land ?lord|land ?lady|boss|manager|supervisor|team ?lead|line manager|dentist|doctor|gp|physician|"
    r"general practitioner|therapist|psychologist|psychiatrist|physiotherapist|p(?:a)?ediatrician|"
    r"gyn(?:a)?ecologist|dermatologist|optician|vet|veterinarian|midwife|lawyer|solicitor|attorney|"
    r"accountant|tax advis[eo]r|financial advis[eo]r|hair ?dresser|barber|coach|trainer|tutor|"
    r"partner|wife|husband|spouse|fianc[eé]e?|girl ?friend|boy ?friend|mother|father|mum|mom|dad|"
    r"mother-in-law|father-in-law|room ?mate|flat ?mate|cleaner|housekeeper|nanny|babysitter|"
    r"ph\.?d\.? supervisor|thesis advis[eo]r|advis[eo]r|mentor|assistant|secretary"
)
_THINGS: Final = (
    r"name|age|birthday|birth ?date|date of birth|(?:\w+ )?address|home ?town|e-?mail(?: address)?|"
    r"(?:phone|telephone|mobile|cell|fax|work|home|passport|account|customer|membership|room|flat|locker|"
    r"house|apartment|licen[cs]e|insurance|tax|id|order|\w+)(?: \w+)? number|phone|telephone|pin|password|"
    r"(?:\w+ )?code|employer|company|workplace|profession|occupation|job title|salary|nationality|"
    r"native language|mother tongue|time ?zone|height|weight|blood (?:type|group)|shoe size|"
    r"(?:clothing|dress|shirt|ring) size|bank|health insurer|phone provider|internet provider|licen[cs]e plate|"
    r"(?:favou?rite|preferred) [\w ]{2,40}?"
)
_MANY: Final = (
    r"friend|colleague|brother|sister|son|daughter|child|kid|cousin|uncle|aunt|neighbou?r|student|"
    r"grand\w+|nephew|niece|sibling|pet|pupil|client|patient"
)
"""Those of whom one has several: a second name is no correction."""

_ENGLISH: Final = tuple(
    re.compile(pattern, re.IGNORECASE)
    for pattern in (
        rf"{_MINE} {_NEWLY}(?P<person>(?:{_OF})?{_KIND}(?:{_PEOPLE}))(?:['’]s name)?{_IS}(?P<value>.+)",
        rf"{_ME} (?:now )?(?:have|has|got)(?: got)? a new (?P<person>{_KIND}(?:{_PEOPLE}))(?:[,:]| called| named) (?P<value>.+)",
        rf"(?P<value>.{{1,120}}?) is (?:now )?{_MINE} (?:new |current )?(?P<person>(?:{_OF})?{_KIND}(?:{_PEOPLE}))(?: now)?",
        rf"{_MINE} {_NEWLY}(?P<thing>(?:{_OF})?(?:{_THINGS})){_IS}(?P<value>.+)",
        rf"(?P<value>.{{1,120}}?) is (?:now )?{_MINE} (?:new |current )?(?P<thing>(?:{_OF})?(?:{_THINGS}))(?: now)?",
        rf"{_MINE} (?P<named>(?!(?:[\w-]+ )*?(?:{_MANY})\b)[\w '’-]{{2,40}}?)(?:['’]s name is| (?:is|are) (?:now )?(?:called|named)) (?P<value>.+)",
        rf"{_ME} (?:am|is) (?:called|named) (?P<own_name>.+)",
        rf"{_ME} (?:now |currently )?(?:lives?|(?:am|is|are) (?:now )?living|resides?) (?:now |currently )?in (?P<place>.+)",
        rf"{_ME} (?:have |has )?(?:just |recently )?moved (?:house )?(?:back )?(?:from .+? )?to (?P<place>.+)",
        rf"{_ME} (?:am|is) (?P<aged>\d+)(?: years old)?",
        rf"{_ME} (?:now |currently )?(?:works?|(?:am|is) (?:now )?(?:working|employed)) (?:now |currently )?(?:for|at|by) (?P<firm>.+)",
        rf"{_ME} (?:have |has )?(?:just |recently )?(?:joined|started (?:working )?(?:at|for)) (?P<firm>.+)",
    )
)

_ZH_OWN: Final = r"(?:我|我们|用户)(?:家)?的?(?:新|新的|现在的|目前的)?"
_ZH_PEOPLE: Final = (
    r"房东|老板|上司|领导|主管|经理|牙医|(?:家庭|私人|眼科|儿科|皮肤科|妇科|主治)?医生|大夫|心理咨询师|心理医生|"
    r"治疗师|律师|会计|理发师|教练|导师|班主任|伴侣|对象|爱人|妻子|太太|老婆|丈夫|老公|先生|未婚妻|未婚夫|"
    r"女朋友|女友|男朋友|男友|母亲|妈妈|父亲|爸爸|室友|保姆|秘书|助理|兽医"
)
_ZH_THINGS: Final = (
    r"(?:[\u4e00-\u9fff]{0,4}?)(?:名字|姓名|年龄|生日|地址|住址|邮箱|电子邮件|号码|手机号|微信号|密码|电话|"
    r"职业|工作单位|单位|雇主|公司|工资|国籍|母语|时区|身高|体重|血型|鞋码|衣服尺码|车牌号|车牌|开户行)|"
    r"(?:最喜欢的|最爱的|最喜爱的)[\u4e00-\u9fff]{1,8}?"
)
_ZH_IS: Final = r"(?:现在|如今|目前)?(?:换成了|改成了|改成|变成了|改为|换成|名叫|叫做|叫作|的名字是|名字叫|叫|是|为)(?:了)?"
_ZH_MANY: Final = r"朋友|同事|兄|弟|姐|妹|哥|儿子|女儿|孩子|邻居|同学|表|堂|叔|舅|姑|姨|侄|外甥|孙"
_ZH_FIRM_END: Final = r"(?:公司|集团|银行|医院|大学|学院|中学|小学|学校|研究所|事务所|工厂|厂|局|部|店|科技|物流|传媒|出版社)"

_CHINESE: Final = tuple(
    re.compile(pattern)
    for pattern in (
        rf"{_ZH_OWN}(?P<person>(?:{_ZH_PEOPLE}))(?P<is>{_ZH_IS}|姓)(?P<value>.+)",
        rf"(?:我|我们|用户)换了(?:新的|新|个|一个|一位|位)*(?P<person>{_ZH_PEOPLE})[，,、 ]*(?:现在|新的)?(?:是|叫)(?P<value>.+)",
        rf"(?P<value>[^，,是]{{1,12}})(?:现在)?是(?:我|我们|用户)的?(?:新|新的|现在的)?(?P<person>{_ZH_PEOPLE})",
        rf"{_ZH_OWN}(?P<thing>{_ZH_THINGS})(?:{_ZH_IS})(?P<value>.+)",
        rf"(?:我的|用户的|我(?!的)|用户(?!的))(?P<named>(?!{_ZH_MANY})[\u4e00-\u9fff]{{1,8}}?)(?:的名字是|现在叫|名叫|叫做|叫)(?P<value>.+)",
        r"(?:我|用户)(?:叫|名叫)(?P<own_name>.+)",
        r"(?:我|我们|用户)(?:现在|目前)?(?:居)?住在(?P<place>.+)",
        r"(?:我|我们|用户)(?:已经|刚|最近|刚刚|上周|上个月|去年|今年)?(?:搬家|搬|迁)(?:到|去)了?(?P<place>.+)",
        r"(?:我|用户)(?:现在|目前)?(?:就职于|任职于|供职于|入职了?|跳槽到了?)(?P<firm>.+)",
        rf"(?:我|用户)(?:现在|目前)?在(?P<firm>[^，,]{{1,20}}{_ZH_FIRM_END})(?:上班|工作|任职|就职)",
        r"(?:我|用户)(?:今年)?(?P<aged>\d+)岁了?",
    )
)

_BEGINNING: Final = re.compile(
    r"^(?:(?:actually|now|currently|so|and|well|by the way|btw|also known|from now on|as of (?:today|now|this \w+))[, ]+"
    r"|现在起?[，,]?|其实[，,]?|从现在起[，,]?|今后[，,]?)+",
    re.IGNORECASE,
)
_FURTHER: Final = re.compile(
    r"\b(?:also|too|as well|another|second|other|part[- ]time|on (?:the )?weekends?|on the side|sometimes|"
    r"former(?:ly)?|previous(?:ly)?|used to|old|ex|late|last|first|until|no longer|not|never|n['’]t)\b|"
    r"\b(?:was|were)\b|\bex-|也|另|还有|兼职|以前|之前|曾经|前任|过去|不是|不再|没有|前(?:妻|夫|女友|男友|老板)",
    re.IGNORECASE,
)
"""What says that it is a further one, one of the past, or none."""

_WHEN: Final = (
    r"(?:(?:last|this|next) (?:week(?:end)?|month|year|spring|summer|autumn|fall|winter|\w+day)|yesterday|today|"
    r"recently|two \w+ ago|\w+ (?:days|weeks|months|years) ago)"
)
_HARMLESS: Final = re.compile(
    rf"\byears old\b|\b(?:first|last|second|middle) (?:name|language)\b|\b{_WHEN}\b", re.IGNORECASE
)

_TITLE: Final = re.compile(
    r"^(?:dr|mr|mrs|ms|miss|prof|professor|doctor|sir|dame|herr|frau)\b\.?", re.IGNORECASE
)
_NAMED: Final = re.compile(r"\b(?:called|named)\b|['’]s name\b", re.IGNORECASE)
_ARTICLE: Final = re.compile(
    r"^(?:a|an|the|my|our|his|her|their|very|really|so|too|quite|from|in|on|at|of|one|some|both|this|that|"
    r"away|ill|sick|home|here|there|now|always|usually|about|like|never|still|just)\b",
    re.IGNORECASE,
)
_DESCRIBING: Final = """
    african american arab arabic argentine argentinian asian australian austrian bavarian belgian brazilian
    british bulgarian canadian catholic chilean chinese christian colombian croatian cuban czech danish dutch
    egyptian english estonian ethiopian european filipino finnish french georgian german ghanaian greek hindu
    hungarian icelandic indian indonesian iranian iraqi irish israeli italian jamaican japanese jewish kenyan
    korean latvian lebanese lithuanian malaysian mexican moroccan muslim nepali nigerian norwegian pakistani
    persian peruvian polish portuguese protestant buddhist romanian russian saudi scottish serbian slovak
    slovenian somali spanish sri swedish swiss syrian taiwanese thai tunisian turkish ukrainian vegan
    vegetarian venezuelan vietnamese welsh aries taurus gemini leo virgo libra scorpio capricorn aquarius pisces
    """
_PEOPLES: Final = frozenset(_DESCRIBING.split())
"""What begins with a capital and describes."""

_ZH_SURNAMES: Final = (
    "王李张刘陈杨黄赵吴周徐孙马朱胡郭何林高罗郑梁谢宋唐许韩冯邓曹彭曾肖田董袁潘于蒋蔡余杜叶程苏魏吕丁任沈姚卢"
    "姜崔钟谭陆汪范金石廖贾夏韦付方白邹孟熊秦邱江尹薛闫段雷侯龙史陶黎贺顾毛郝龚邵万钱严覃武戴莫孔向汤欧阳上官诸葛"
)
_ZH_TITLED: Final = re.compile(
    r"^.{1,4}(?:先生|女士|小姐|太太|医生|大夫|老师|师傅|经理|律师|教授|主任|阿姨|总)$"
)
_ZH_NAME: Final = re.compile(rf"^(?:[{_ZH_SURNAMES}])[\u4e00-\u9fff·]{{1,3}}$")
_ZH_DESCRIBES: Final = re.compile(r"[的人]$|^[很非太一个位]|[吗呢]$")

_SAME: Final = {
    "landlady": "landlord", "gp": "doctor", "physician": "doctor", "general practitioner": "doctor",
    "telephone": "phone number", "phone": "phone number", "telephone number": "phone number",
    "e-mail": "email", "email address": "email", "e-mail address": "email", "home address": "address",
    "company": "employer", "workplace": "employer", "profession": "job", "occupation": "job",
    "birth date": "birthday", "birthdate": "birthday", "date of birth": "birthday", "mum": "mother",
    "mom": "mother", "dad": "father", "veterinarian": "vet", "mother tongue": "native language",
    "blood group": "blood type", "name": "own name", "age": "aged", "attorney": "lawyer",
    "大夫": "医生", "家庭医生": "医生", "私人医生": "医生", "住址": "地址", "家庭地址": "地址", "电话": "电话号码", "手机": "手机号",
    "手机号码": "手机号", "电子邮件": "邮箱", "公司": "employer", "单位": "employer", "雇主": "employer",
    "工作单位": "employer", "老婆": "妻子", "太太": "妻子",
    "爱人": "伴侣", "对象": "伴侣", "老公": "丈夫", "先生": "丈夫", "女友": "女朋友", "男友": "男朋友", "上司": "老板",
    "领导": "老板", "妈妈": "母亲", "爸爸": "父亲", "心理医生": "心理咨询师", "名字": "own name", "姓名": "own name",
    "年龄": "aged", "车牌": "车牌号", "最爱的": "最喜欢的",
}  # fmt: skip
"""One form for words of one meaning, where a person has only one of both."""

_NOT_WORDS: Final = re.compile(r"[\W_]+")
_CONTRACTED: Final = {"m": "am", "ve": "have"}
_ENDS: Final = " \t.,;:!?。，；：！？"


def attribute_of(statement: str) -> Attribute | None:
    """Return what a statement gives the one value of, or None."""
    text = " ".join(unicodedata.normalize("NFKC", statement).split()).strip(_ENDS)
    text = _BEGINNING.sub("", text)
    text = re.sub(r"\b([Ii])['’](m|ve)\b", lambda m: f"{m[1]} {_CONTRACTED[m[2]]}", text)
    if _FURTHER.search(_HARMLESS.sub("", text)):
        return None
    for pattern in (*_ENGLISH, *_CHINESE):
        found = pattern.fullmatch(text)
        if found is not None:
            return _read(found)
    return None


def _read(found: "re.Match[str]") -> Attribute | None:
    """Return the attribute that a pattern found, unless its value describes instead of naming."""
    groups = {name: said for name, said in found.groupdict().items() if said is not None}
    value = _trim(groups.pop("value", ""))
    if "person" in groups:
        is_named = bool(_NAMED.search(found[0])) or groups.get("is", "").endswith("叫")
        is_name = is_named or groups.get("is") == "姓" or _is_name(value)
        return Attribute(_canonical(groups["person"]), value) if is_name and value else None
    if "thing" in groups:
        subject = _canonical(groups["thing"])
        if subject.endswith("'s name"):
            return _read_name_of(subject.removesuffix("'s name"), value)
        return Attribute(subject, value) if _fits(subject, value) else None
    if "named" in groups:
        return Attribute(f"named {_canonical(groups['named'])}", value)
    ((kind, said),) = groups.items()
    said = _trim(said)
    if kind in ("place", "firm") and not _is_proper(said):
        return None
    return Attribute(
        {"place": "home", "firm": "employer", "own_name": "own name"}.get(kind, kind), said
    )


_ONE_OF_MANY: Final = re.compile(rf"\b(?:{_MANY})$")
_PERSON: Final = re.compile(rf"{_KIND}(?:{_PEOPLE})")
_LATELY: Final = re.compile(
    rf"(?<!\s)\s+(?:now|currently|these days|at the moment|again|instead|{_WHEN})$|了$"
)


def _read_name_of(whose: str, value: str) -> Attribute | None:
    """Return whom or what "my cat's name is" names; of friends and the like there are several."""
    if _ONE_OF_MANY.search(whose):
        return None
    is_person = _PERSON.fullmatch(whose)
    return Attribute(_canonical(whose) if is_person else f"named {whose}", value)


def _trim(value: str) -> str:
    """Return the value without "now" and what follows it in another clause."""
    value = re.split(r"[;；。！？]|, (?:and|but|so|who|which|she|he|it|they|i) |，", value)[0]
    return _LATELY.sub("", value).strip(_ENDS)


def _is_name(value: str) -> bool:
    """Return whether a value names a person: a title, capitals, or a Chinese name."""
    if _ZH_TITLED.match(value):
        return True
    if re.match(r"[\u4e00-\u9fff]", value):
        return bool(_ZH_NAME.match(value)) and not _ZH_DESCRIBES.search(value)
    if _TITLE.match(value):
        return True
    words = value.split()
    is_short = len(words) <= 4 and not _ARTICLE.match(value)
    return is_short and words[0][:1].isupper() and words[0].casefold() not in _PEOPLES


def _fits(subject: str, value: str) -> bool:
    """Return whether a value can be one of the thing: a number has digits, an employer is named."""
    if not value or _ZH_DESCRIBES.search(value):
        return False
    if re.search(
        r"number$|^(?:pin|age|height|weight|salary|shoe size)$|号码?$|身高|体重|鞋码", subject
    ):
        return re.search(r"[\d一二三四五六七八九零〇]", value) is not None
    if (
        subject.startswith("favourite ")
        or subject in _ANY_VALUE
        or re.match(r"[\u4e00-\u9fff]", value)
    ):
        return True
    if subject == "own name":
        return len(value.split()) <= 3 and not _ARTICLE.match(value)
    return "@" in value or (not _ARTICLE.match(value) and bool(re.search(r"[A-Z\d]", value)))


_ANY_VALUE: Final = frozenset(
    [
        "nationality",
        "native language",
        "profession",
        "occupation",
        "job title",
        "time zone",
        "timezone",
        "password",
    ]
)
"""What is written without capitals, too."""


def _is_proper(value: str) -> bool:
    """Return whether it names a place or a firm, and is no description ("a flat", "an office")."""
    if re.match(r"[\u4e00-\u9fff]", value):
        return not re.match(r"^(?:一|家|自己|公寓|宿舍|楼|附近|这|那|郊区|市中心|乡下|城里)", value)
    return bool(value) and not _ARTICLE.match(value) and (value[0].isupper() or value[0].isdigit())


def _canonical(subject: str) -> str:
    """Return one form of a subject, without case and without the words that say "of today"."""
    whole = " ".join(subject.casefold().replace("’", "'").split())
    whole = whole.replace("favorite", "favourite").replace("preferred", "favourite")
    owner, joint, own = whole.rpartition("'s ")
    own = re.sub(r"^(?:new|current|present) ", "", own)
    return f"{owner}{joint}{own if owner and own == 'name' else _SAME.get(own, own)}"


def _parts(value: str) -> frozenset[str]:
    """Return the words of a value, and each sign of Han as one."""
    plain = _NOT_WORDS.sub(" ", value.casefold())
    spaced = re.sub(r"([\u4e00-\u9fff])", r" \1 ", plain)
    return frozenset(word for word in spaced.split() if word not in _TITLES)


_NO_PARTS: Final = "dr mr mrs ms miss prof professor doctor the on in at of 先 生 女 士 医"
_TITLES: Final = frozenset(_NO_PARTS.split())
