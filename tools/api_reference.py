"""Print docs/api.md: the reference of the public Python API, made from its docstrings."""

from __future__ import annotations

import ast
import inspect
import re
import sys
import textwrap
from collections.abc import Callable, Iterator, Mapping
from functools import cached_property
from typing import Any

import equipoise

HEAD = """# Python API

`import equipoise as eq` offers the names below. They are imported when they are first used. The
command line calls the same functions. `tools/api_reference.py` makes this page from the docstrings.

Values of the model are frozen: `value.but(name=...)` returns a copy with other fields. A type such
as `VmKey` is a text or a number with the limits that [files.md](files.md) states.
"""
GROUPS: dict[str, Callable[[Any], bool]] = {
    "Functions": inspect.isfunction,
    "Classes": lambda value: inspect.isclass(value) and not issubclass(value, Exception),
    "Errors": lambda value: inspect.isclass(value) and issubclass(value, Exception),
}


class _Type(str):
    """An annotation, printed without quotes."""

    __slots__ = ()

    def __repr__(self) -> str:
        return str(self)


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


def _entry(name: str, value: Any) -> Iterator[str]:
    yield f"### `eq.{name}`\n"
    if inspect.isfunction(value):
        yield f"```python\n{_call(name, value)}\n```\n"
    yield _text(value) + "\n"
    if inspect.isclass(value):
        fields = list(_fields(value))
        if fields:
            yield "| attribute | type | meaning |\n| --- | --- | --- |\n" + "\n".join(fields) + "\n"
        yield from _methods(value)


def _call(name: str, function: Callable[..., Any]) -> str:
    """Return the signature of a function with one parameter per line."""
    signature = inspect.signature(function)
    parameters = [
        parameter.replace(annotation=_Type(parameter.annotation))
        if isinstance(parameter.annotation, str)
        else parameter
        for parameter in signature.parameters.values()
        if parameter.name != "self"
    ]
    shown = str(signature.replace(parameters=parameters, return_annotation=signature.empty))
    # Defaults that are objects print their address; a page must be the same everywhere.
    shown = re.sub(r"<[^<>]* at 0x[0-9a-f]+>", "...", shown)
    one_line = f"{name}{shown} -> {signature.return_annotation}"
    if len(one_line) <= 100 or not parameters:  # noqa: PLR2004
        return one_line
    lines, is_keyword_only = [], False
    for parameter in parameters:
        if parameter.kind is inspect.Parameter.KEYWORD_ONLY and not is_keyword_only:
            is_keyword_only = True
            lines.append("    *,")
        lines.append("    " + re.sub(r"<[^<>]* at 0x[0-9a-f]+>", "...", f"{parameter},"))
    return "\n".join((f"{name}(", *lines, f") -> {signature.return_annotation}"))


def _text(value: Any) -> str:
    text = inspect.cleandoc(value.__doc__ or "")
    return re.sub(r":(param|raises) ([\w.]+):", r"- `\2`:", text).replace("``", "`")


def _fields(value: type) -> Iterator[str]:
    """Yield a row for each public attribute, with the text that follows it in the source."""
    rows: dict[str, str] = {}
    for base in reversed(value.__mro__):
        if not base.__module__.startswith("equipoise"):
            continue
        body = ast.parse(textwrap.dedent(inspect.getsource(base))).body[0]
        assert isinstance(body, ast.ClassDef)
        notes = dict(_notes(body))
        for node in body.body:
            if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
                name, kind = node.target.id, _type(node.annotation)
            elif isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
                name, kind = node.targets[0].id, ast.unparse(node.value)
            else:
                continue
            if not name.startswith("_"):
                rows[name] = f"| `{name}` | `{kind}` | {notes.get(name, '')} |"
    yield from rows.values()


def _type(annotation: ast.expr) -> str:
    """Return a type as it is written, without the limits of ``Annotated``."""
    if isinstance(annotation, ast.Subscript) and ast.unparse(annotation.value) == "Annotated":
        assert isinstance(annotation.slice, ast.Tuple)
        annotation = annotation.slice.elts[0]
    return ast.unparse(annotation).replace(" | ", " or ")


def _notes(body: ast.ClassDef) -> Iterator[tuple[str, str]]:
    """Yield the attributes of a class that a string follows, with this string."""
    for node, after in zip(body.body, body.body[1:], strict=False):
        target = node.target if isinstance(node, ast.AnnAssign) else None
        if isinstance(node, ast.Assign):
            target = node.targets[0]
        if isinstance(target, ast.Name) and isinstance(after, ast.Expr):
            text = getattr(after.value, "value", None)
            if isinstance(text, str):
                yield target.id, " ".join(text.split()).replace("``", "`").replace("|", "\\|")


def _methods(value: type) -> Iterator[str]:
    """Yield the public methods and properties of a class, with their texts."""
    members: Mapping[str, Any] = {
        name: member
        for base in reversed(value.__mro__)
        if base.__module__.startswith("equipoise")
        for name, member in vars(base).items()
        if not name.startswith("_") and name != "but"
    }
    rows = []
    for name, member in members.items():
        if isinstance(member, property | cached_property):
            function = member.fget if isinstance(member, property) else member.func
            rows.append(f"- `{name}`: {_summary(function)}")
        elif isinstance(member, classmethod | staticmethod):
            shown = _call(name, getattr(value, name))
            rows.append(f"- `{value.__name__}.{shown}`: {_summary(member)}")
        elif inspect.isfunction(member):
            rows.append(f"- `{_call(name, member)}`: {_summary(member)}")
    if rows:
        yield "\n".join(rows) + "\n"


def _summary(member: Any) -> str:
    return " ".join(_text(member).split("\n\n")[0].split())


if __name__ == "__main__":
    sys.stdout.write(reference())
