"""Prints docs/codes.md: the stable codes of problems, reasons, refusals and faults.

    python tools/code_list.py > docs/codes.md

The codes and their meanings are ``CODES`` in src/equipoise/errors.py. The comment lines of that
mapping divide it into sections.
"""

from __future__ import annotations

import inspect
import re
import sys
from collections.abc import Iterator

from equipoise import errors

_SECTION = re.compile(r"    # (.+?)\.?$")
_CODE = re.compile(r'    "([a-z0-9-]+)":')
_INTRODUCTION = """# Codes

Each problem, reason, refusal and fault has a stable code beside its sentence: `code` in the Python
value and in `--json`. Programs and tests compare codes. A sentence may change between versions; a
code keeps its meaning.

This page is generated: `python tools/code_list.py > docs/codes.md`.
"""


def sections() -> Iterator[tuple[str, list[str]]]:
    """Yield the sections of ``CODES`` in the order of the source, each with its sorted codes."""
    title, codes = "", list[str]()
    source = inspect.getsource(errors).partition("CODES:")[2].partition("\n}")[0]
    for line in source.splitlines():
        heading, entry = _SECTION.match(line), _CODE.match(line)
        if heading is not None:
            if codes:
                yield title, sorted(codes)
            title, codes = heading[1], []
        elif entry is not None:
            codes.append(entry[1])
    yield title, sorted(codes)


def page() -> str:
    """Return the text of docs/codes.md."""
    text = _INTRODUCTION
    for title, codes in sections():
        rows = "".join(f"| `{code}` | {errors.CODES[code]} |\n" for code in codes)
        text += f"\n## {title}\n\n| code | meaning |\n|---|---|\n{rows}"
    return text


if __name__ == "__main__":
    sys.stdout.write(page())
