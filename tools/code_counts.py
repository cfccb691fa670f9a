"""Prints the size of each package, and the class names that more than one module defines.

    python tools/code_counts.py            the tree of this checkout
    git archive REVISION src | tar x -C DIR && python tools/code_counts.py DIR

A code line has a token of Python other than a comment or a string on its own, such as a docstring.
A note is a line of the text that follows a field or a constant and explains it.
"""

from __future__ import annotations

import ast
import io
import sys
import tokenize
from collections import Counter, defaultdict
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

_SHORT_LINES = 100
_LAYOUT = {
    tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT, tokenize.ENCODING,
    tokenize.ENDMARKER,
}  # fmt: skip


class Counts(NamedTuple):
    """The size of one or more modules."""

    files: int = 0
    short_files: int = 0
    lines: int = 0
    code_lines: int = 0
    comment_lines: int = 0
    note_lines: int = 0

    def plus(self, other: Counts) -> Counts:
        """Return the sum of two sizes."""
        return Counts(*(mine + theirs for mine, theirs in zip(self, other, strict=True)))


def counts_of(text: str) -> Counts:
    """Return the size of one module."""
    comments: set[int] = set()
    code: set[int] = set()
    text_lines = _string_statement_lines(text)
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type == tokenize.COMMENT:
            comments.add(token.start[0])
        elif token.type not in _LAYOUT:
            code.update(range(token.start[0], token.end[0] + 1))
    code -= text_lines
    lines = text.count("\n")
    notes = sum(1 for _ in _note_lines(text))
    return Counts(1, int(lines < _SHORT_LINES), lines, len(code), len(comments - code), notes)


def _string_statement_lines(text: str) -> set[int]:
    """Return the lines of strings that stand alone: docstrings of modules, classes and fields."""
    return {
        line
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.Expr)
        and isinstance(node.value, ast.Constant)
        and isinstance(node.value.value, str)
        for line in range(node.lineno, (node.end_lineno or node.lineno) + 1)
    }


def _note_lines(text: str) -> Iterator[int]:
    """Yield the lines of the texts that follow fields and constants."""
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Module | ast.ClassDef):
            for before, after in pairwise(node.body):
                is_text = (
                    isinstance(after, ast.Expr)
                    and isinstance(after.value, ast.Constant)
                    and isinstance(after.value.value, str)
                )
                if is_text and isinstance(before, ast.Assign | ast.AnnAssign):
                    yield from range(after.lineno, (after.end_lineno or after.lineno) + 1)


def shared_class_names(modules: list[Path]) -> list[str]:
    """Return the names of public classes that more than one module defines."""
    names = Counter(
        node.name
        for path in modules
        for node in ast.parse(path.read_text()).body
        if isinstance(node, ast.ClassDef) and not node.name.startswith("_")
    )
    return sorted(name for name, times in names.items() if times > 1)


def main(root: Path) -> None:
    """Print the table of a tree."""
    package = root / "src" / "equipoise"
    modules = sorted(package.rglob("*.py"))
    sizes: dict[str, Counts] = defaultdict(Counts)
    for path in modules:
        parts = path.relative_to(package).parts
        name = parts[0] if len(parts) > 1 else "(root)"
        sizes[name] = sizes[name].plus(counts_of(path.read_text()))
    print(f"| package | files | under {_SHORT_LINES} lines | lines | code | comments | notes |")
    print("|---|---:|---:|---:|---:|---:|---:|")
    for name, size in sorted(sizes.items()):
        _print_row(name, size)
    total = Counts()
    for size in sizes.values():
        total = total.plus(size)
    _print_row("**all**", total)
    shared = shared_class_names(modules)
    print(f"\n{len(shared)} class names in more than one module. {', '.join(shared)}")


def _print_row(name: str, size: Counts) -> None:
    cells = (size.files, size.short_files, size.lines, size.code_lines)
    cells += (size.comment_lines, size.note_lines)
    print(f"| {name} | {' | '.join(f'{cell:,}' for cell in cells)} |")


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).parent.parent)
