"""No regular expression of the project costs more than its text is long: `re` holds the interpreter."""

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]

SECONDS = 1_200
"""For a machine that is very busy; some 30 seconds of processor time."""
pytestmark = pytest.mark.timeout(SECONDS + 60)
SUPER_LINEAR = [
    r"(a+)+b",
    r"\s*(<!--.{0,2000}?-->\s*)*<(!doctype html|html)\b",
    r"[ \t]+$",
    r"<q>(.*)</q>",
    r"\w+\s*=",
    r"(?:\A|\n)\s*x",
]
LINEAR = [r"[ab]+", r"\A\s++x", r"(?<!\s)\s+x", r"\d{1,9}[.)]", r"a|b|c"]


def measured(*arguments: str) -> Any:
    """What `tests.hostile.patterns` finds, in a process that can be killed."""
    command = [sys.executable, "-m", "tests.hostile.patterns", *arguments]
    run = subprocess.run(
        command, cwd=ROOT, capture_output=True, text=True, timeout=SECONDS, check=True
    )
    return json.loads(run.stdout)


def test_every_pattern_takes_time_in_proportion_to_its_text():
    found = measured()
    assert found["slow"] == {}
    assert found["built_when_run"] == []
    written = sum(
        len(re.findall(r"\b(?:re|regex)\.compile\(", path.read_text()))
        for path in ROOT.glob("[a-z]*/**/*.py")
        if not {"tests", "bench", "var"} & set(path.relative_to(ROOT).parts)
    )
    assert found["patterns"] >= written, "some are not found"


def test_what_is_slow_is_found_and_what_is_not_is_not():
    found = measured(json.dumps([*SUPER_LINEAR, *LINEAR]))
    assert sorted(found["slow"]) == sorted(SUPER_LINEAR)
