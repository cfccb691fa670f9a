"""The rules of the code base as functions of a tree: each returns the problems that it finds.

They take the root of the tree, so that a test can also judge a copy to which it has added a file.
"""

from __future__ import annotations

import ast
import re
import subprocess
import tomllib
from collections import Counter
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Final
from zoneinfo import available_timezones

from banned_words import banned_words

FILE_LINES_MAX: Final = 600
FUNCTION_LINES_MAX: Final = 60
FOLDER_FILES_MAX: Final = 12
PACKAGE_WORDS_MIN: Final = 12
JUNK: Final = re.compile(r"(Manager|Impl|Helper|Util)(?![a-z])")
JUNK_FILES: Final = {"utils", "util", "common", "core", "helpers", "base", "managers", "misc"}
TEXT_FILES: Final = {".css", ".java", ".js", ".md", ".py", ".sh", ".spec", ".toml", ".yaml"}
VAGUE_NAMES: Final = frozenset(
    {"each", "found", "it", "left", "one", "these", "thing", "those", "which", "who", "whom"}
)
"""Names of loop variables that tests may use, except ``one``, and the package may not."""
UNFINISHED: Final = re.compile(r"\b(TODO|FIXME|XXX|NotImplementedError)\b")
# Spelt in pieces, so that this file does not find itself.
MACHINE_PATHS: Final = re.compile(
    "|".join(["/wo" + "rk/", "/ro" + "ot/", "/ho" + "me/", r"file" + "s.pythonhosted"])
)
LINK: Final = re.compile(r"\]\((?!https?:)([^)#]+)")
CODE_SPAN: Final = re.compile(r"`([^`\n]+)`")
TIME_ZONES = available_timezones()
PATH: Final = re.compile(r"[\w.-]+(/[\w.-]+)+/?|[\w-]+\.py")
PLACEHOLDER: Final = re.compile(r"\b[A-Z]{4,}\b")
MOVED_MODULE: Final = re.compile(r"^\| `[^`]+\.py` \| `([^`]+\.py)` \|$", re.MULTILINE)
DOTTED: Final = re.compile(r"[a-z_]+(\.\w+)+")


def source(root: Path) -> Path:
    """Return the folder of the package."""
    return root / "src" / "equipoise"


def tracked(root: Path, *patterns: str) -> list[Path]:
    """Return the files that git knows or would add, so that generated files are not judged."""
    listed = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard", *patterns],
        cwd=root, capture_output=True, text=True, check=True,
    )  # fmt: skip
    return [root / name for name in listed.stdout.split() if (root / name).exists()]


def modules(root: Path) -> list[Path]:
    """Return the Python files of the package."""
    return sorted(source(root).rglob("*.py"))


def module_problems(path: Path) -> Iterator[str]:
    """Yield what is wrong with one module: its size, its name, its docstring, its functions."""
    text = path.read_text()
    tree = ast.parse(text)
    if text.count("\n") > FILE_LINES_MAX:
        yield f"{path}: more than {FILE_LINES_MAX} lines (split it by idea)"
    if not ast.get_docstring(tree):
        yield f"{path}: no docstring (say what it is, and what it never does)"
    if path.stem in JUNK_FILES:
        yield f"{path}: an empty name (name the idea)"
    if UNFINISHED.search(text):
        yield f"{path}: unfinished work (do it or file an issue)"
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            assert node.end_lineno is not None
            if node.end_lineno - node.lineno >= FUNCTION_LINES_MAX:
                yield f"{path}:{node.lineno}: {node.name} has over {FUNCTION_LINES_MAX} lines"
        elif isinstance(node, ast.ClassDef) and JUNK.search(node.name):
            yield f"{path}:{node.lineno}: {node.name} (name what it does)"


def package_problems(root: Path) -> Iterator[str]:
    """Yield packages without a description, and folders with too many modules."""
    for path in source(root).glob("*/__init__.py"):
        docstring = ast.get_docstring(ast.parse(path.read_text())) or ""
        if len(docstring.split()) < PACKAGE_WORDS_MIN:
            yield f"{path}: name its entry points and its limits"
    for folder in (source(root), *(path for path in source(root).rglob("*") if path.is_dir())):
        count = len(list(folder.glob("*.py")))
        if count > FOLDER_FILES_MAX:
            yield f"{folder}: {count} modules (at most {FOLDER_FILES_MAX}: group them by idea)"


def class_name_problems(root: Path) -> Iterator[str]:
    """Yield public class names that two modules define: they mislead readers and imports."""
    names = Counter(
        node.name
        for path in modules(root)
        for node in ast.parse(path.read_text()).body
        if isinstance(node, ast.ClassDef) and not node.name.startswith("_")
    )
    yield from (f"{name}: defined {times} times" for name, times in names.items() if times > 1)


def loop_variable_problems(root: Path) -> Iterator[str]:
    """Yield loops whose variable does not name the thing that it holds."""
    for path in tracked(root, "*.py"):
        vague = VAGUE_NAMES if path.is_relative_to(source(root)) else {"one"}
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.For | ast.comprehension):
                for target in ast.walk(node.target):
                    if isinstance(target, ast.Name) and target.id in vague:
                        yield f"{path}:{target.lineno}: {target.id} names no thing (vm, host, move)"


def word_problems(root: Path) -> Iterator[str]:
    """Yield banned words in prose, in names and in the names of files."""
    for path in tracked(root):
        name = path.relative_to(root).as_posix()
        # Files of earlier versions keep their words.
        if "old_files" in path.parts or path.name == "0015-names-of-the-field.md":
            continue
        text = path.read_text() if path.suffix in TEXT_FILES or path.name == "Makefile" else ""
        for line, word, cure in banned_words(text, name):
            yield f"{name}:{line}: {word} ({cure})"
        for _, word, cure in banned_words(path.stem, ""):
            if path.name != "banned_words.py":
                yield f"{name}: {word} ({cure})"


def machine_path_problems(root: Path) -> Iterator[str]:
    """Yield files that name a path or a registry of one machine."""
    for path in tracked(root):
        if path.suffix in TEXT_FILES | {".lock"} or path.name in {"Makefile", "run"}:
            found = MACHINE_PATHS.search(path.read_text())
            if found:
                yield f"{path}: {found.group()}"


def link_problems(root: Path) -> Iterator[str]:
    """Yield links of documents to files that do not exist."""
    for path in tracked(root, "*.md"):
        for target in LINK.findall(path.read_text()):
            if not (path.parent / target).exists():
                yield f"{path}: links to {target}"


def named_path_problems(root: Path) -> Iterator[str]:
    """Yield files and modules that a document names in backticks and that do not exist.

    A word in capitals stands for a name: ``cli/GROUP/commands.py`` needs one such file. Findings
    name files of other projects, the change log and the table of moved modules name old ones.
    """
    groups = set(tomllib.loads((root / "pyproject.toml").read_text())["project"]["entry-points"])
    names = {path.name for path in tracked(root, "*.py")}
    for path in tracked(root, "*.md"):
        if "findings" in path.parts or path.name in {"CHANGELOG.md", "0015-names-of-the-field.md"}:
            continue
        for span in CODE_SPAN.findall(path.read_text()):
            for word in span.split():
                if word in TIME_ZONES:  # a zone looks like a path
                    continue
                if PATH.fullmatch(word):
                    missing = not _file_exists(root, path, word, names)
                elif DOTTED.fullmatch(word) and word.startswith("equipoise."):
                    missing = word not in groups and not _name_exists(word)
                else:
                    continue
                if missing:
                    yield f"{path}: {word} does not exist"


def renamed_module_problems(root: Path) -> Iterator[str]:
    """Yield modules that the table of moved modules names and that do not exist."""
    table = (root / "docs" / "adr" / "0015-names-of-the-field.md").read_text()
    for module in MOVED_MODULE.findall(table):
        if not (source(root) / module).exists():
            yield f"{module}: does not exist (write where its code went, or deleted)"


def _file_exists(root: Path, document: Path, name: str, known: set[str]) -> bool:
    if "/" not in name:
        return name in known
    # Made by commands, or large inputs beside the checkout.
    if name.startswith((".venv/", "out/", "shared/data/")):
        return True
    pattern = PLACEHOLDER.sub("*", name.rstrip("/"))
    folders = (root, root / "src", source(root), document.parent, root / "tests")
    return any(any(folder.glob(pattern)) for folder in folders)


def _name_exists(dotted: str) -> bool:
    """Return whether a name is a module, or an attribute of one."""
    module, _, attribute = dotted.rpartition(".")
    try:
        import_module(dotted)
    except ModuleNotFoundError:
        try:
            return hasattr(import_module(module), attribute)
        except ModuleNotFoundError:
            return False
    return True


def all_problems(root: Path) -> list[str]:
    """Return everything that is wrong with a tree."""
    return [
        *(problem for path in modules(root) for problem in module_problems(path)),
        *package_problems(root),
        *class_name_problems(root),
        *loop_variable_problems(root),
        *word_problems(root),
        *machine_path_problems(root),
        *link_problems(root),
        *named_path_problems(root),
        *renamed_module_problems(root),
    ]
