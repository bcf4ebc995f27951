"""The processes that open documents: what they may not do, and what happens when they end."""

import json
import os
import signal
import subprocess
import sys
import threading
from dataclasses import asdict
from pathlib import Path

import pytest

from amber.processes import wait_until
from libraries.parsing import ParserLost, Unreadable, child_pool
from libraries.parsing.child_pool import MAX_WAITING, ChildPool
from libraries.parsing.confinement import ParserLimits
from libraries.tests.documents import pdf_of, xlsx_of

PAGE = b"<html><body>Hello</body></html>"
ROOT = Path(__file__).resolve().parents[3]


@pytest.fixture
def pools():
    """Makes pools, and ends their children."""
    made = []

    def make(**options):
        made.append(ChildPool(**options))
        return made[-1]

    yield make
    for pool in made:
        pool.close()


def program(code):
    """A child that does this instead of reading documents."""
    return [sys.executable, "-c", f"import os, signal, sys, time\n{code}"]


def confined(code):
    """What this prints in a process under the limits of a parser."""
    text = (
        "import json, sys\nsys.path.insert(0, sys.argv[2])\n"
        "from libraries.parsing.confinement import ParserLimits, confine\n"
        f"confine(ParserLimits(**json.loads(sys.argv[1])))\n{code}"
    )
    command = [sys.executable, "-c", text, json.dumps(asdict(ParserLimits())), str(ROOT)]
    return subprocess.run(command, capture_output=True, text=True, check=False)


# -- What a parser may not do ----------------------------------------------------------------------


@pytest.mark.parametrize(
    "code",
    [
        "import socket; socket.socket()",
        "import socket; socket.getaddrinfo('localhost', 80)",
        "import subprocess; subprocess.run(['true'])",
        "import os; os.system('true')",
        "import os; os.fork()",
        "import os; os.execv('/bin/true', ['true'])",
        "open('/tmp/written-by-a-parser', 'w')",
        "import os; os.open('/tmp/written-by-a-parser', os.O_CREAT | os.O_WRONLY)",
        "import os; os.remove('/tmp/nothing')",
        "import ctypes; ctypes.CDLL(None)",
    ],
)
def test_a_parser_may_not(code):
    ended = confined(code)
    assert ended.returncode == 1
    assert "PermissionError: A parser may not" in ended.stderr


def test_a_parser_has_no_network_where_the_kernel_can_take_it_away():
    allowed = subprocess.run(["unshare", "-rn", "true"], capture_output=True, check=False)
    if allowed.returncode:
        pytest.skip("This kernel gives no namespaces to this user.")
    ended = confined("import os; print(os.readlink('/proc/self/ns/net'))")
    assert ended.stdout.strip() != os.readlink("/proc/self/ns/net")  # noqa: PTH115


def test_a_parser_gets_a_gigabyte_at_most():
    assert "MemoryError" in confined("bytearray(1_100_000_000)").stderr


def test_a_parser_knows_nothing_of_ours(pools):
    """Neither our settings and keys nor Django, numpy or the provider's client."""
    code = (
        "from libraries.parsing import child\n"
        "sys.argv[1:] = ['{}']\n"
        "real = child.read_document\n"
        "from libraries.parsing.result import ParsedText\n"
        "def spy(kind, content):\n"
        "    real(kind, content)\n"
        "    loaded = {m for m in ('django', 'numpy', 'openai') if sys.modules.get(m)}\n"
        "    return ParsedText(repr((sorted(loaded), sorted(os.environ))), (), '')\n"
        "child.read_document = spy\n"
        "child.main()\n"
    )
    pool = pools(command=program(code))
    for content in (xlsx_of({"S": [["x"]]}), pdf_of(["x"])):
        kind = "PDF" if content.startswith(b"%PDF") else "PACKAGE"
        loaded, environment = eval(pool.parse(content, kind=kind).text)
        assert loaded == []
        assert not {name for name in environment if "AMBER" in name or "DATABASE" in name}


# -- How a child ends ------------------------------------------------------------------------------


def test_a_parser_that_hangs_is_killed_with_all_it_started(pools, tmp_path):
    started = tmp_path / "pid"
    code = (
        "child = os.fork()\n"
        f"if child: open({str(started)!r}, 'w').write(str(child))\n"
        "time.sleep(600)"
    )
    pool = pools(limits=ParserLimits(wall_seconds=5), command=program(code))
    with pytest.raises(Unreadable, match="takes too long"):
        pool.parse(PAGE, kind="HTML")
    status = Path(f"/proc/{started.read_text()}/status")

    def is_gone():
        try:
            return "Z (zombie)" in status.read_text()
        except OSError:  # nothing is left of it
            return True

    # A killed process is gone once it would run again, which a busy machine puts off.
    assert wait_until(is_gone, timeout_seconds=30)


def test_a_parser_that_hangs_while_it_should_read_is_killed(pools):
    pool = pools(limits=ParserLimits(wall_seconds=1), command=program("time.sleep(600)"))
    with pytest.raises(Unreadable, match="takes too long"):
        pool.parse(b"x" * 5_000_000, kind="HTML")


def test_a_parser_out_of_its_cpu_time_is_told_as_too_slow(pools):
    pool = pools(limits=ParserLimits(cpu_seconds=1))
    rows = xlsx_of({"S": ([n, n, n, n, n, n] for n in range(60_000))})
    with pytest.raises(Unreadable, match="takes too long"):
        pool.parse(rows, kind="PACKAGE")


def test_each_document_has_cpu_time_of_its_own(pools):
    pool = pools(limits=ParserLimits(cpu_seconds=2))
    rows = xlsx_of({"S": ([n] * 4 for n in range(6_000))})
    texts = {pool.parse(rows, kind="PACKAGE").text for _ in range(6)}
    assert len(texts) == 1


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM], ids=["kill", "term"])
def test_a_parser_killed_from_outside_is_not_the_documents_fault(pools, number):
    pool = pools(command=program(f"sys.stdin.buffer.read(9); os.kill(os.getpid(), {int(number)})"))
    with pytest.raises(ParserLost):
        pool.parse(PAGE, kind="HTML")


@pytest.mark.parametrize(
    "code", ["raise KeyError('x')", "os.kill(os.getpid(), signal.SIGSEGV)", "os._exit(3)"]
)
def test_a_parser_that_crashes_makes_the_document_damaged(pools, code):
    pool = pools(command=program(f"sys.stdin.buffer.read(9)\n{code}"))
    with pytest.raises(Unreadable, match="damaged"):
        pool.parse(PAGE, kind="HTML")


def test_a_parser_without_memory_makes_the_document_too_big(pools):
    pool = pools(command=program("sys.stdin.buffer.read(9)\nraise MemoryError"))
    with pytest.raises(Unreadable, match="memory"):
        pool.parse(PAGE, kind="HTML")


@pytest.mark.parametrize(
    "written",
    ["b'\\xff' * 100", "b'\\0\\0\\0\\2' + b'\\xff' * 8 + b'{}'"],
    ids=["header", "body"],
)
def test_a_parser_may_not_answer_without_bounds(pools, written):
    code = f"sys.stdin.buffer.read(9)\nsys.stdout.buffer.write({written})\nsys.stdout.flush()"
    pool = pools(command=program(code))
    with pytest.raises((Unreadable, ParserLost)):
        pool.parse(PAGE, kind="HTML")


# -- How children are kept -------------------------------------------------------------------------


def test_the_same_child_reads_the_next_document(pools):
    pool = pools()
    seen = set()
    for _ in range(3):
        assert pool.parse(PAGE, kind="HTML").text == "Hello"
        seen.update(pool.waiting_pids())
    assert len(seen) == 1


def test_a_child_that_ended_while_waiting_is_replaced(pools):
    pool = pools()
    pool.parse(PAGE, kind="HTML")
    [pid] = pool.waiting_pids()
    os.kill(pid, signal.SIGKILL)
    os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT)
    assert pool.parse(PAGE, kind="HTML").text == "Hello"
    assert pool.waiting_pids() != [pid]


def test_a_refusal_does_not_end_the_child(pools):
    pool = pools()
    pool.parse(PAGE, kind="HTML")
    before = pool.waiting_pids()
    with pytest.raises(Unreadable):
        pool.parse(b"<html></html>", kind="HTML")
    assert pool.waiting_pids() == before


def test_a_child_that_needed_much_memory_is_not_kept(pools, monkeypatch):
    monkeypatch.setattr(child_pool, "MAX_RESIDENT_KILOBYTES", 1_000)
    pool = pools()
    assert pool.parse(PAGE, kind="HTML").text == "Hello"
    assert pool.waiting_pids() == []


def test_many_threads_read_at_once_and_few_children_stay(pools):
    pool = pools()
    texts = []

    def read(number):
        page = f"<html><body>Number {number}</body></html>".encode()
        texts.append((number, pool.parse(page, kind="HTML").text))

    threads = [threading.Thread(target=read, args=(number,)) for number in range(12)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(texts) == [(number, f"Number {number}") for number in range(12)]
    assert len(pool.waiting_pids()) <= MAX_WAITING


def test_importing_the_package_loads_no_parser():
    code = (
        "import sys; import libraries.parsing; "
        "print([m for m in ('lxml', 'pypdf', 'docx', 'pptx', 'openpyxl', 'django') "
        "if m in sys.modules])"
    )
    ended = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True
    )
    assert ended.stdout.strip() == "[]"


def test_what_a_text_is_is_not_told_in_the_process_that_asks():
    """Its writer chooses how long that takes."""
    code = (
        "import sys; from libraries.parsing import parse\n"
        "print(parse(b'<!---->' * 40 + b'x', name='a.txt', mime_type='').mime_type)\n"
        "print([m for m in ('encodings', 'kinds') if f'libraries.parsing.{m}' in sys.modules])"
    )
    ended = subprocess.run(
        [sys.executable, "-c", code],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    assert ended.stdout.split("\n")[:2] == ["text/plain", "[]"]
