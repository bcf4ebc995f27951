"""Make a small set of questions in two languages: every document answers one of each kind.

Twenty things with a name, a number, a colour and a place of their own, described in English and in
Chinese; questions in each language, by part number, and by words that only the right text combines.
"""

from typing import Any

_THINGS = [
    ("pump", "水泵"),
    ("valve", "阀门"),
    ("boiler", "锅炉"),
    ("turbine", "涡轮机"),
    ("compressor", "压缩机"),
    ("generator", "发电机"),
    ("conveyor", "传送带"),
    ("furnace", "熔炉"),
    ("gearbox", "变速箱"),
    ("condenser", "冷凝器"),
]
_PLACES = [
    ("Bergen", "卑尔根"),
    ("Osaka", "大阪"),
    ("Lisbon", "里斯本"),
    ("Cusco", "库斯科"),
    ("Tartu", "塔尔图"),
]
_CARES = [
    ("is greased every spring", "每年春天上油"),
    ("must cool down for an hour before it is opened", "打开之前必须冷却一小时"),
    ("needs a new gasket after two thousand hours", "运行两千小时后需要更换垫片"),
    ("starts only when the red lever is pulled", "拉下红色手柄才能启动"),
]


def question_set() -> dict[str, Any]:
    """In Amber's own form, with its documents."""
    documents, questions = [], []
    for number in range(20):
        (thing, thing_zh), (place, place_zh) = _THINGS[number % 10], _PLACES[number % 5]
        care, care_zh = _CARES[(number // 10 + number) % 4]
        part = f"MX-{1000 + 37 * number}/{number}.A"
        english, chinese = f"en/{number}.md", f"zh/{number}.md"
        documents += [
            {
                "path": english,
                "text": f"The {thing} in hall {number} of the plant in {place} {care}. "
                f"Its part number is {part}; read_sensor_{number}() reports its state.",
            },
            {
                "path": chinese,
                "text": f"{place_zh}工厂{number}号车间的{thing_zh}{care_zh}，由值班工程师负责。",
            },
        ]
        questions += [
            {"question": f"What does the {thing} in hall {number} need?", "documents": [english]},
            {"question": f"{place_zh}{number}号车间的{thing_zh}怎么保养？", "documents": [chinese]},
            {"question": part, "documents": {english: 2}},
            {"question": f"read_sensor_{number}()", "documents": [english]},
        ]
    return {"documents": documents, "questions": questions}
