"""Assemble the widget: one file for embedders, of its own part and the modules it shares with the page.

`make widget` writes it; tests/test_web_files.py holds it to its parts. A line `/*= shared/name.js */` in
web/widget/amber-widget.js stands for that module, without its imports, exports and types.
"""

import re
from pathlib import Path

WEB = Path(__file__).resolve().parent.parent
TARGET = WEB.parent / "public_api" / "static" / "amber-widget.js"


def assemble() -> str:
    source = (WEB / "widget" / "amber-widget.js").read_text()
    return re.sub(
        r"^\t/\*= (\S+) \*/\n", lambda found: _inline(WEB / found[1]), source, flags=re.MULTILINE
    )


def _inline(module: Path) -> str:
    code = re.sub(r"^[ \t]*/\*\*.*?\*/\n", "", module.read_text(), flags=re.MULTILINE | re.DOTALL)
    code = re.sub(r"/\*\* @type \{.*?\} \*/ ?\(((?:[^()]|\([^()]*\))*)\)", r"\1", code)
    code = re.sub(r"/\*\* @type \{.*?\} \*/ ?", "", code)
    code = re.sub(r"^import .*\n\n?", "", code, flags=re.MULTILINE)
    code = re.sub(r"^export ", "", code, flags=re.MULTILINE)
    return "".join(f"\t{line}\n" if line else "\n" for line in code.strip().splitlines())


if __name__ == "__main__":
    TARGET.write_text(assemble())
