"""Print docs/api.md: the reference of the public Python API, made from its docstrings."""

from __future__ import annotations

import inspect
import re
import sys
from collections.abc import Callable, Iterator
from typing import Any

import equipoise

HEAD = """# Python API

`import equipoise as eq` offers the names below. They are imported when they are first used. The
command line calls the same functions. `tools/api_reference.py` makes this page from the docstrings.
"""
GROUPS: dict[str, Callable[[Any], bool]] = {
    "Functions": inspect.isfunction,
    "Classes": lambda value: inspect.isclass(value) and not issubclass(value, Exception),
    "Errors": lambda value: inspect.isclass(value) and issubclass(value, Exception),
}


def reference() -> str:
    """Return the whole page."""
    parts = [HEAD]
    for title, belongs in GROUPS.items():
        parts.append(f"## {title}\n")
        for name in equipoise.__all__:
            value = getattr(equipoise, name)
            if belongs(value):
                parts += _entry(name, value)
    return "\n".join(parts)


def _entry(name: str, value: object) -> Iterator[str]:
    yield f"### `eq.{name}`\n"
    if inspect.isfunction(value):
        # Defaults that are objects print their address; a page must be the same everywhere.
        shown = re.sub(r"<[^<>]* at 0x[0-9a-f]+>", "...", str(inspect.signature(value)))
        yield f"```python\n{name}{shown}\n```\n"
    text = inspect.cleandoc(value.__doc__ or "")
    yield re.sub(r":(param|raises) ([\w.]+):", r"- `\2`:", text).replace("``", "`") + "\n"


if __name__ == "__main__":
    sys.stdout.write(reference())
