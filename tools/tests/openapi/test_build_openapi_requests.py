import json
import re
from urllib.parse import parse_qsl, unquote

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from amber.lib.egress import EgressPolicy
from tools.openapi.plan import FORM, MULTIPART, Place, Plan
from tools.openapi.request import build_request
from tools.protocol import ArgumentsError

SERVER = "https://a.example.com/v1"
TEXT = st.text(st.characters(codec="utf-8", exclude_categories=["Cs"]), max_size=60)


def plan(*places, path="/p", **more):
    return Plan("POST", SERVER, path, places, **more)


def place(where, style="", *, explode=False, **more):
    return Place("it", "it", where, style, explode, **more)


def built(a_plan, **arguments):
    return build_request(a_plan, arguments)


LIST, OBJECT = ["blue", "bl ack"], {"R": 100, "G": "2/0"}


@pytest.mark.parametrize(
    ("style", "explode", "value", "path"),
    [
        ("simple", False, "a b/c?d#e&f", "a%20b%2Fc%3Fd%23e%26f"),
        ("simple", False, 5, "5"),
        ("simple", False, True, "true"),
        ("simple", False, LIST, "blue,bl%20ack"),
        ("simple", False, OBJECT, "R,100,G,2%2F0"),
        ("simple", True, OBJECT, "R=100,G=2%2F0"),
        ("label", False, "blue", ".blue"),
        ("label", False, LIST, ".blue,bl%20ack"),
        ("label", True, LIST, ".blue.bl%20ack"),
        ("label", True, OBJECT, ".R=100.G=2%2F0"),
        ("matrix", False, "blue", ";it=blue"),
        ("matrix", False, LIST, ";it=blue,bl%20ack"),
        ("matrix", True, LIST, ";it=blue;it=bl%20ack"),
        ("matrix", False, OBJECT, ";it=R,100,G,2%2F0"),
        ("matrix", True, OBJECT, ";R=100;G=2%2F0"),
    ],
    ids=range(15),
)
def test_path_styles(style, explode, value, path):
    where = place("path", style, explode=explode)
    assert built(plan(where, path="/x/{it}/y"), it=value).url == f"{SERVER}/x/{path}/y"


@pytest.mark.parametrize(
    ("style", "explode", "value", "query"),
    [
        ("form", True, "a b&c=d+e", "it=a%20b%26c%3Dd%2Be"),
        ("form", True, LIST, "it=blue&it=bl%20ack"),
        ("form", False, LIST, "it=blue,bl%20ack"),
        ("form", True, OBJECT, "R=100&G=2%2F0"),
        ("form", False, OBJECT, "it=R,100,G,2%2F0"),
        ("spaceDelimited", False, LIST, "it=blue%20bl%20ack"),
        ("pipeDelimited", False, LIST, "it=blue%7Cbl%20ack"),
        ("deepObject", True, OBJECT, "it%5BR%5D=100&it%5BG%5D=2%2F0"),
        ("deepObject", True, {"a": {"b": [1]}}, "it%5Ba%5D%5Bb%5D%5B0%5D=1"),
        ("form", True, "", "it="),
        ("form", True, [[1]], "it=%5B1%5D"),
    ],
    ids=range(11),
)
def test_query_styles(style, explode, value, query):
    where = place("query", style, explode=explode)
    assert built(plan(where), it=value).url == f"{SERVER}/p?{query}"


def test_reserved_characters_stay_where_that_is_allowed_but_never_end_the_value():
    where = place("query", "form", explode=True, allow_reserved=True)
    assert built(plan(where), it="a/b:c&d=e#f").url == f"{SERVER}/p?it=a/b:c%26d%3De%23f"


def test_a_value_may_be_json():
    where = place("query", as_json=True)
    assert built(plan(where), it={"a": [1]}).url == f"{SERVER}/p?it=%7B%22a%22%3A%5B1%5D%7D"


@pytest.mark.parametrize(
    ("value", "explode", "header"),
    [
        ("plain; text", False, "plain; text"),
        (LIST, False, "blue,bl ack"),
        (OBJECT, True, "R=100,G=2/0"),
    ],
    ids=range(3),
)
def test_header_styles(value, explode, header):
    assert built(plan(place("header", "simple", explode=explode)), it=value).headers == {
        "it": header
    }


def test_cookies_go_into_one_header():
    places = [Place("a", "a", "cookie", "form", True), Place("b", "b", "cookie", "form", True)]
    assert built(plan(*places), a="1; b=2", b="é").headers == {"Cookie": "a=1%3B%20b%3D2; b=%C3%A9"}


def test_only_what_the_plan_names_is_sent_and_null_is_not():
    where = place("query", "form", explode=True)
    assert built(plan(where), it=None, other="x").url == f"{SERVER}/p"


# -- Nothing leaves its place --------------------------------------------------------------------

ITEM = plan(place("path", "simple"), path="/items/{it}/photo")


@pytest.mark.parametrize(
    "value",
    ["..", ".", "%2e%2e", "../admin", "a/../b", "..\\admin", "a/..", "%2E%2e/x", " .. ", ["a/.."]],
    ids=range(10),
)
def test_a_path_is_not_climbed(value):
    with pytest.raises(ArgumentsError, match="segment"):
        built(ITEM, it=value)


@pytest.mark.parametrize("value", ["", [], {}], ids=range(3))
def test_a_part_of_a_path_is_not_empty(value):
    with pytest.raises(ArgumentsError, match="must not be empty"):
        built(ITEM, it=value)


def test_parts_of_a_path_do_not_make_a_climb_together():
    places = [Place("a", "a", "path", "simple"), Place("b", "b", "path", "simple")]
    for template in ("/x/{a}{b}", "/x/.{a}"):
        with pytest.raises(ArgumentsError):
            built(plan(*places, path=template), a="", b="..")
    with pytest.raises(ArgumentsError):
        built(plan(place("path", "label"), path="/x/{it}"), it=".")


def test_a_part_of_a_path_must_be_given():
    with pytest.raises(ArgumentsError, match="it is part of the address"):
        built(ITEM)


@given(TEXT)
def test_a_text_stays_in_its_segment(value):
    try:
        url = built(ITEM, it=value).url
    except ArgumentsError:
        return
    sent = EgressPolicy().check_url(url).raw_path.decode()
    assert re.fullmatch(r"/v1/items/[A-Za-z0-9._~%-]+/photo", sent)
    assert unquote(sent.split("/")[3]) == value


@given(
    st.dictionaries(TEXT, TEXT) | st.lists(TEXT),
    st.sampled_from(["simple", "label", "matrix"]),
    st.booleans(),
)
def test_a_list_or_object_stays_in_its_segment(value, style, explode):
    where = place("path", style, explode=explode)
    try:
        url = built(plan(where, path="/items/{it}/photo"), it=value).url
    except ArgumentsError:
        return
    assert re.fullmatch(
        r"/v1/items/[^/?#\\]+/photo", EgressPolicy().check_url(url).raw_path.decode()
    )


@given(TEXT, TEXT)
def test_a_text_stays_in_its_query_parameter(value, other):
    places = [Place("a", "a", "query", "form", True), Place("b", "b", "query", "form", True)]
    url = built(plan(*places), a=value, b=other).url
    query = EgressPolicy().check_url(url).query.decode()
    assert parse_qsl(query, keep_blank_values=True) == [("a", value), ("b", other)]


@given(TEXT)
def test_a_header_is_one_line(value):
    try:
        headers = built(plan(place("header", "simple")), it=value).headers
    except ArgumentsError:
        assert re.search(r"[\x00-\x1f\x7f]", value)
        return
    assert not re.search(r"[\x00-\x1f\x7f]", headers["it"])


@pytest.mark.parametrize("value", ["a\r\nEvil: 1", "a\nb", "a\0b", ["a", "b\r\n"]], ids=range(4))
def test_no_header_is_injected(value):
    with pytest.raises(ArgumentsError, match="one plain line"):
        built(plan(place("header", "simple")), it=value)


def test_a_very_long_address_is_refused():
    with pytest.raises(ArgumentsError, match="shorten"):
        built(plan(place("query", "form", explode=True)), it="x" * 9_000)


# -- Bodies --------------------------------------------------------------------------------------

FIELDS = [Place(name, name, "body", explode=True) for name in ("a", "b")]


def test_a_json_body_is_put_together_and_keeps_its_nulls():
    request = built(plan(*FIELDS, media_type="application/json"), a=None, b=[1, "é"])
    assert json.loads(request.body) == {"a": None, "b": [1, "é"]}
    assert request.headers == {"Content-Type": "application/json"}


def test_a_whole_body_is_sent_as_it_is():
    whole = plan(media_type="application/json", body_argument="body")
    assert json.loads(built(whole, body=[1]).body) == [1]
    assert built(whole).body is None
    text = plan(media_type="text/plain", body_argument="body")
    assert built(text, body="héllo").body == "héllo".encode()


def test_a_body_without_fields_is_empty_or_absent():
    assert built(plan(*FIELDS, media_type="application/json")).body is None
    assert built(plan(*FIELDS, media_type="application/json", needs_body=True)).body == b"{}"


def test_a_form_is_urlencoded():
    deep = Place("c", "c", "body", "deepObject", True)
    request = built(plan(*FIELDS, deep, media_type=FORM), a="x&y=z", b=[1, 2], c={"d": 1})
    assert request.body == b"a=x%26y%3Dz&b=1&b=2&c%5Bd%5D=1"
    assert request.headers == {"Content-Type": FORM}
    assert built(plan(*FIELDS, media_type=FORM), a={"x": 1}).body == b"a=%7B%22x%22%3A1%7D"


def test_a_form_of_free_fields():
    request = built(plan(media_type=FORM, body_argument="body"), body={"a": "1", "b": None})
    assert request.body == b"a=1"
    with pytest.raises(ArgumentsError, match="must be an object"):
        built(plan(media_type=FORM, body_argument="body"), body="a=1")


def parts_of(request):
    boundary = request.headers["Content-Type"].partition("boundary=")[2]
    assert request.body.endswith(f"--{boundary}--\r\n".encode())
    return request.body.decode().split(f"--{boundary}")[1:-1]


def test_multipart_has_a_part_for_each_field_and_item():
    file = Place("file", "file", "body", explode=True, is_file=True)
    request = built(plan(*FIELDS, file, media_type=MULTIPART), a={"x": 1}, b=["1", "2"], file="hi")
    parts = parts_of(request)
    assert len(parts) == 4
    assert parts[0] == (
        '\r\nContent-Disposition: form-data; name="a"\r\nContent-Type: application/json'
        '\r\n\r\n{"x":1}\r\n'
    )
    assert parts[1] == '\r\nContent-Disposition: form-data; name="b"\r\n\r\n1\r\n'
    assert 'name="file"; filename="file"\r\nContent-Type: application/octet-stream' in parts[3]


@given(TEXT, TEXT)
def test_no_field_of_a_multipart_body_makes_another(name, value):
    assume(value is not None)
    request = built(plan(media_type=MULTIPART, body_argument="body"), body={name: value})
    (part,) = parts_of(request)
    head, _, content = part.removeprefix("\r\n").partition("\r\n\r\n")
    assert content == f"{value}\r\n"
    assert re.fullmatch(r'Content-Disposition: form-data; name="[^"\r\n]*"', head)


def test_a_plan_is_kept_as_json():
    whole = plan(*FIELDS, place("path", "label", explode=True), media_type=FORM, needs_body=True)
    assert Plan.from_data(json.loads(json.dumps(whole.as_data()))) == whole
