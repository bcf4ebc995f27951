"""Collapse runs of newlines in a text, but not inside its fenced code blocks.

A fence is CommonMark's: https://spec.commonmark.org/0.31.2/#fenced-code-blocks. Fences inside
block quotes and list items are not recognised: they do not start a line within three spaces.
"""

import re

_OPENING_FENCE = re.compile(r" {0,3}(`{3,}(?=[^`]*$)|~{3,})")
_CLOSING_FENCE = re.compile(r" {0,3}(`{3,}|~{3,})[ \t]*$")
_NEWLINES = re.compile(r"\n{2,}")


def collapse_newlines(text: str) -> str:
    r"""Return `text` with `\n` for `\r\n` and one newline for each run of them outside fenced code.

    An unclosed fence runs to the end.
    """
    text = text.replace("\r\n", "\n")
    if "\n\n" not in text:
        return text
    if "```" not in text and "~~~" not in text:
        return _NEWLINES.sub("\n", text)
    return _collapse_outside_fences(text)


def _collapse_outside_fences(text: str) -> str:
    lines = text.split("\n")
    kept: list[str] = []
    fence = ""
    for number, line in enumerate(lines):
        if fence:
            if _closes(line, fence):
                fence = ""
        elif match := _OPENING_FENCE.match(line):
            fence = match[1]
        elif not line and 0 < number < len(lines) - 1:
            continue  # an empty line between two others is a newline too many
        kept.append(line)
    return "\n".join(kept)


def _closes(line: str, fence: str) -> bool:
    match = _CLOSING_FENCE.match(line)
    return match is not None and match[1].startswith(fence)
