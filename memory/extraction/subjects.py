"""Tell which of a person's known subjects a message touches: their home, work, dentist, number.

Wider than `memory.facts.attributes`, which decides: this only chooses what a model is shown, so that it
can say what is no longer true. "We found a new flat" names no address, and makes one untrue. Pure.
"""

import re
from collections.abc import Set
from typing import Final

from memory.facts.attributes import attribute_of

_SENTENCE_END: Final = re.compile(r"(?<=[!?。！？\n;；])|(?<=[a-z\d)]\.)\s+|\n+")
_CLAUSE_END: Final = re.compile(
    r"[,，;；:：]\s*(?:and |but |so |because |since )?|(?<!\s)\s+(?:and|but|so|because|since)\s+|，?(?:而且|但是?|并且|所以|因为)"
)

_CUES: Final = tuple(
    (re.compile(pattern, re.IGNORECASE), frozenset(subjects.split("|")))
    for pattern, subjects in (
        (
            r"\b(?:mov(?:e|ed|ing)|relocat\w+|new (?:flat|apartment|house|place|home|city|town)|rent\w*|lease|settled)\b|"
            r"搬|新家|新房|租|定居|迁",
            "home|address|landlord|phone number|房东|地址",
        ),
        (
            r"\b(?:job|jobs|work\w*|quit|resign\w*|hired|fired|laid off|promoted|joined|joining|office|career|"
            r"employ\w*|company|boss|manager|contract|retired?)\b|工作|公司|单位|辞职|离职|入职|跳槽|老板|上司|领导|升职|退休|上班",
            "employer|boss|manager|profession|occupation|job title|salary|老板|主管|经理|职业|工资",
        ),
        (
            r"\b(?:married|marry\w*|wedding|divorc\w+|broke up|break up|split up|engaged|separated|dating|single|"
            r"together with)\b|结婚|离婚|分手|订婚|单身|在一起",
            "partner|wife|husband|spouse|fiance|fiancé|fiancée|girlfriend|boyfriend|own name|"
            "妻子|丈夫|伴侣|女朋友|男朋友|未婚妻|未婚夫",
        ),
        (
            r"\b(?:phone|number|sim|mobile|cell|call me|reach me|e-?mail|mail|contact)\b|电话|手机|号码|邮箱|微信|联系",
            "phone number|mobile number|email|电话号码|手机号|邮箱|微信号",
        ),
        (
            r"\b(?:dentist|teeth|tooth|doctor|gp|physician|clinic|practice|therap\w+|psycholog\w+|counsel\w+|surgery)\b|"
            r"牙|医生|大夫|诊所|医院|心理|咨询",
            "dentist|doctor|therapist|psychologist|psychiatrist|physiotherapist|牙医|医生|心理咨询师|治疗师",
        ),
        (r"\b(?:birthday|turned|years old|age)\b|岁|生日", "aged|birthday|生日"),
        (r"\b(?:bank|account)\b|银行|账户|开户", "bank|account number|开户行"),
    )
)


def subject_of(statement: str) -> str | None:
    """Return the subject of which a statement gives the one value, or None."""
    attribute = attribute_of(statement)
    return attribute.subject if attribute else None


def subjects_in(text: str) -> Set[str]:
    """Return the subjects that a text gives values of, and those that its words make likely."""
    touched: set[str] = set()
    for sentence in sentences_of(text):
        for part in (sentence, *_CLAUSE_END.split(sentence)):
            if part and (subject := subject_of(part)):
                touched.add(subject)
    for cue, subjects in _CUES:
        if cue.search(text):
            touched |= subjects
    return touched


def sentences_of(text: str) -> list[str]:
    """Return the sentences of a text, in order. One that is cut at an abbreviation does no harm here."""
    return [part.strip() for part in _SENTENCE_END.split(text) if part.strip()]
