"""Test the built-in tool `web_browse` with local pages, well-formed and hostile ones."""

import gzip
import re
import resource

import pytest

from amber.lib import egress
from amber.lib.tests.egress.guarded_client import door, through_door
from amber.lib.tests.local_server import Answer, say, send_to
from libraries.parsing import web_page
from libraries.parsing.child_pool import ChildPool
from libraries.parsing.confinement import ParserLimits
from libraries.parsing.result import MAX_PAGE_CHARS
from tools.builtin.web import pages
from tools.builtin.web_browse import budget_tokens, cut_piece
from tools.calling.registry import offer_builtin_tools
from tools.protocol import Circumstances, ToolError
from tools.tests.services import call, url_of

PARAGRAPH = "Amber is fossil resin. It has been used for jewellery since the Stone Age. " * 4
ARTICLE = f"""<!doctype html><html><head><title> On
 Amber </title></head><body><nav><a href="/">Home</a></nav><main><h1>Amber</h1>
<p>See <a href="../fossils?x=1">fossils</a>. {PARAGRAPH}</p><h2>Uses</h2><p>{PARAGRAPH}</p></main>
<script>alert("never")</script></body></html>"""
CHINESE = f"""<html><head><title>琥珀</title></head><body><h1>琥珀</h1>
<p>{"琥珀是远古树木的树脂，埋在地下变成的化石。" * 6}</p></body></html>"""


def html(text: str | bytes, kind: str = "text/html", **headers: str) -> Answer:
    body = text if isinstance(text, bytes) else text.encode()
    return say(body, headers={"Content-Type": kind} | headers)


@pytest.fixture
def site(settings, server):
    settings.AMBER_TOOL_ALLOWED_HOSTS = [f"127.0.0.1:{server.port}"]
    return server


@pytest.fixture
def browse(site, context):
    def read(path="/a/page", **arguments):
        return call("web_browse", {"url": url_of(site, path), **arguments}, context).text

    return read


def refusal_of(browse, *args, **arguments):
    with pytest.raises(ToolError) as caught:
        browse(*args, **arguments)
    return str(caught.value)


# -- When it is offered ----------------------------------------------------------------------------


def test_is_offered_unless_browsing_is_disabled():
    assert "web_browse" in [tool.name for tool in offer_builtin_tools(Circumstances())]
    disabled = offer_builtin_tools(Circumstances(disable_web_browsing=True))
    assert "web_browse" not in [tool.name for tool in disabled]


# -- What is read ----------------------------------------------------------------------------------


def test_a_page_is_markdown_under_its_title_and_address(site, browse):
    site.routes["/a/page"] = html(ARTICLE)
    text = browse()
    address = url_of(site, "/a/page")
    assert text.startswith(f"# On Amber\n{address}\n\n")
    assert f"[fossils]({url_of(site, '/fossils?x=1')})" in text
    assert "## Uses" in text
    assert "Stone Age" in text
    assert "never" not in text
    assert "Home" not in text


def test_links_go_by_the_page_s_own_base_and_by_where_it_was_found(site, browse):
    based = ARTICLE.replace("<head>", '<head><base href="https://other.example/x/y/">')
    site.routes["/based"] = html(based)
    site.routes["/moved"] = send_to("/b/c/page")
    site.routes["/b/c/page"] = html(ARTICLE)
    assert "(https://other.example/x/fossils?x=1)" in browse("/based")
    text = browse("/moved")
    assert url_of(site, "/b/c/page") in text
    assert url_of(site, "/b/fossils?x=1") in text


@pytest.mark.parametrize(
    ("body", "kind"),
    [
        (CHINESE.encode("gbk"), "text/html; charset=gbk"),
        (CHINESE.encode("gbk"), "text/html; charset=GB2312"),
        (CHINESE.replace("<head>", "<head><meta charset=gbk>").encode("gbk"), "text/html"),
        (CHINESE.encode("gbk"), "text/html"),
        (CHINESE.encode(), "text/html; charset=utf-8"),
        (CHINESE.encode(), "text/html"),
        (CHINESE.encode("utf-8-sig"), ""),
        (CHINESE.encode("big5", "replace"), "text/html; charset=big5"),
    ],
    ids=["header", "gb2312", "meta", "gbk-unsaid", "utf-8", "utf-8-unsaid", "no-type", "big5"],
)
def test_every_charset_is_read(site, browse, body, kind):
    site.routes["/a/page"] = html(body, kind)
    text = browse()
    assert text.startswith("# 琥珀\n")
    assert "的" in text
    assert "\ufffd" not in text


def test_a_text_that_is_no_page_is_read_as_it_is(site, browse):
    site.routes["/a/page"] = html('{"amber": [1, 2]}', "application/json")
    assert browse() == f'{url_of(site, "/a/page")}\n\n{{"amber": [1, 2]}}'


def one_page_pdf(text: str) -> bytes:
    drawn = f"BT /F1 12 Tf 72 720 Td ({text}) Tj ET".encode()
    objects = [
        b"<< /Type /Catalog /Pages 2 0 R >>",
        b"<< /Type /Pages /Kids [3 0 R] /Count 1 >>",
        b"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] /Contents 4 0 R"
        b" /Resources << /Font << /F1 5 0 R >> >> >>",
        b"<< /Length %d >>\nstream\n%s\nendstream" % (len(drawn), drawn),
        b"<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>",
    ]
    body, offsets = b"%PDF-1.4\n", []
    for number, each in enumerate(objects, 1):
        offsets.append(len(body))
        body += b"%d 0 obj\n%s\nendobj\n" % (number, each)
    table = b"".join(b"%010d 00000 n \n" % offset for offset in offsets)
    return body + (
        b"xref\n0 6\n0000000000 65535 f \n%strailer\n<< /Size 6 /Root 1 0 R >>\n"
        b"startxref\n%d\n%%%%EOF" % (table, len(body))
    )


@pytest.mark.parametrize("kind", ["application/pdf", "application/octet-stream", "text/html", ""])
def test_a_pdf_is_read_whatever_it_is_called(site, browse, kind):
    site.routes["/a/page"] = html(one_page_pdf("Amber is fossil resin."), kind)
    assert browse() == f"{url_of(site, '/a/page')}\n\nAmber is fossil resin."


def test_a_long_page_is_read_on_to_its_end(settings, site, browse):
    settings.AMBER_TOOL_RESULT_TOKENS = 400
    paragraphs = "".join(f"<p>Paragraph {n}: {PARAGRAPH}</p>" for n in range(20))
    site.routes["/a/page"] = html(f"<html><title>Long</title><body>{paragraphs}</body></html>")
    seen, start = "", 0
    for _ in range(40):
        text = browse(start=start)
        head, _, rest = text.partition("\n\n")
        assert head == f"# Long\n{url_of(site, '/a/page')}"
        piece, _, note = rest.rpartition("\n\n[Characters ")
        seen += piece if piece.endswith("\n") else f"{piece}\n"
        more = re.search(r"start=(\d+)\.\]$", note)
        if more is None:
            break
        assert int(more[1]) > start
        start = int(more[1])
    assert [int(n) for n in re.findall(r"Paragraph (\d+):", seen)] == list(range(20))


@pytest.mark.parametrize("start", [-1, 10_000_000])
def test_a_start_outside_the_page_is_refused_with_its_length(site, browse, start):
    site.routes["/a/page"] = html(ARTICLE)
    assert re.match(r"The page has [\d,]+ characters", refusal_of(browse, start=start))


@pytest.mark.parametrize("text", ["word " * 30_000, "琥珀" * 30_000, "a\n" * 30_000, "🙂" * 9_000])
def test_a_piece_keeps_to_its_budget_and_wastes_little(text):
    from engine.text.tokens import count_text

    limit_tokens = 1_000
    piece = cut_piece(text, 10, limit_tokens)
    assert text[10:].startswith(piece)
    assert limit_tokens * 0.7 < count_text(piece) <= limit_tokens


def test_pieces_stay_below_the_budget_of_results(settings):
    settings.AMBER_TOOL_RESULT_TOKENS = 1_000
    assert budget_tokens() < 1_000


# -- What is not read ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "page",
    [
        "<html><body><div id=root></div><script>render()</script></body></html>",
        "<!doctype html><title>App</title>",
        "<!-- nothing -->",
        "",
    ],
)
def test_a_page_of_scripts_holds_nothing_to_read(site, browse, page):
    site.routes["/a/page"] = html(page)
    assert refusal_of(browse) == pages.NO_TEXT


@pytest.mark.parametrize(
    ("answer", "told"),
    [
        (say(b"", status=404), "The address answers with status 404, not with a page."),
        (say(b"", status=500), "The address answers with status 500, not with a page."),
        (html("x", "image/png"), "The address answers with image/png, not with text."),
        (html(b"\x89PNG\r\n\x1a\n" + b"\0" * 99, ""), pages.UNREADABLE),
        (html(b"\x7fELF" + bytes(range(256)), "application/octet-stream"), pages.UNREADABLE),
        (html(b"%PDF-1.7 broken", "application/pdf"), pages.UNREADABLE),
        (html(b"PK\3\4broken", "text/html"), pages.UNREADABLE),
    ],
)
def test_what_is_no_page_is_refused_in_plain_words(site, browse, answer, told):
    site.routes["/a/page"] = answer
    assert refusal_of(browse) == told


def test_a_huge_page_is_refused(site, browse):
    site.routes["/a/page"] = html("<html>" + "<p>x</p>" * (MAX_PAGE_CHARS // 8))
    assert refusal_of(browse) == pages.TOO_LARGE


def test_a_bomb_is_refused_and_costs_the_worker_nothing(site, browse):
    bomb = gzip.compress(b"<p>x</p>" * 30_000_000, compresslevel=9)
    site.routes["/a/page"] = html(bomb, **{"Content-Encoding": "gzip"})
    site.routes["/a/small"] = html(ARTICLE)
    browse("/a/small")
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    assert refusal_of(browse) == pages.TOO_LARGE
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 50_000


def test_a_page_that_takes_too_long_ends_its_child_and_nothing_else(monkeypatch, site, browse):
    slow = ChildPool(ParserLimits(cpu_seconds=1, wall_seconds=20))
    monkeypatch.setattr(web_page, "_pool", slow)
    site.routes["/a/page"] = html("<ul>" + "<li><a href=/a>x</a>" * 99_000)
    site.routes["/a/small"] = html(ARTICLE)
    try:
        assert refusal_of(browse) == pages.UNREADABLE
        assert "Stone Age" in browse("/a/small")
    finally:
        slow.close()


def test_a_page_of_comments_is_read_at_once(site, browse):
    """Finding out its type once took seconds, which each further comment doubled."""
    site.routes["/a/page"] = html("<!---->" * 40 + "x", "text/plain")
    assert browse().endswith("<!----><!---->x")
    site.routes["/a/page"] = html("<!---->" * 40 + "x", "")
    assert browse().endswith("<!----><!---->x")


def test_deep_nesting_is_survived(site, browse):
    site.routes["/a/page"] = html(ARTICLE.replace("<main>", "<div>" * 20_000 + "<main>"))
    site.routes["/a/small"] = html(ARTICLE)
    try:
        browse()
    except ToolError as error:
        assert str(error) in (pages.NO_TEXT, pages.UNREADABLE)
    assert "Stone Age" in browse("/a/small")


# -- Addresses -------------------------------------------------------------------------------------


def test_a_private_address_is_not_called(server, context):
    with pytest.raises(ToolError, match=r"Amber may call\. It must begin with http"):
        call("web_browse", {"url": url_of(server)}, context)
    assert server.accepted == 0


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_a_redirect_to_a_private_address_is_not_followed(
    monkeypatch, server, other, context, status
):
    server.routes["/"] = send_to(f"http://private.test:{other.port}/", status)
    monkeypatch.setattr(egress, "installation_policy", lambda: through_door(server, other))
    with pytest.raises(ToolError, match="not one that Amber may call"):
        call("web_browse", {"url": door(server)}, context)
    assert other.accepted == 0
