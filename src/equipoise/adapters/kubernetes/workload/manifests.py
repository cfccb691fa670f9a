"""Plain manifests as a workload: YAML with one or more documents, JSON, or a folder of such files.

The annotation ``equipoise.dev/arrival`` says when an object is created; without it, at the start.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any, Final

from equipoise.adapters.kubernetes.annotations import ARRIVAL, annotations_of, read_duration_ms
from equipoise.adapters.kubernetes.workload.manifest_check import KINDS, WrongManifest, checked
from equipoise.adapters.kubernetes.workload.pod_workload import Arrival, Object
from equipoise.errors import InputProblem, InvalidInput
from equipoise.files.document import (
    FileFormat,
    ParsedTree,
    check_size_for_format,
    decode_text,
    detect_formats,
)
from equipoise.files.json_reader import read_json
from equipoise.files.yaml_reader import read_yaml
from equipoise.model.diagnostics import Diagnostic, KeyPath

_SUFFIXES: Final = (".yaml", ".yml", ".json")
_DOCUMENT: Final = re.compile(r"^---(?:[ \t]|$)", re.MULTILINE)
_CONTENT: Final = re.compile(r"^[ \t]*[^#\s]", re.MULTILINE)
_LISTS: Final = frozenset({"List", *(f"{kind}List" for kind in KINDS)})


def is_manifest(path: Path) -> bool:
    """True for a folder, or a name of YAML or JSON."""
    return path.is_dir() or path.name.lower().endswith(_SUFFIXES)


def read_manifests(path: Path) -> tuple[list[Object], list[Arrival]]:
    """Return the nodes, and all other objects with their times, in the order of the files."""
    nodes: list[Object] = []
    arrivals: list[Arrival] = []
    names: set[tuple[str, str, str]] = set()
    for file in _files(path):
        for body in _objects(file, names):
            if body["kind"] == "Node":
                nodes.append(body)
            else:
                at_ms = read_duration_ms(annotations_of(body), ARRIVAL) or 0
                arrivals.append((at_ms, body))
    return nodes, arrivals


def _files(path: Path) -> list[Path]:
    if not path.is_dir():
        return [path]
    found = sorted(
        file for file in path.rglob("*") if file.is_file() and file.name.lower().endswith(_SUFFIXES)
    )
    if not found:
        raise _problem(path, "", "has no manifests", "add files of the kind .yaml or .json")
    return found


def _problem(path: Path, key: str, what: str, cure: str) -> InvalidInput:
    return InvalidInput(str(path), [InputProblem(key=key, what=what, cure=cure)])


def _objects(path: Path, names: set[tuple[str, str, str]]) -> Iterator[Object]:
    """Yield the objects of a file, each of which is checked. ``names`` are those of before."""
    for tree in _documents(path):
        if tree.diagnostics:
            raise InvalidInput(
                str(path), [_located(tree, diagnostic) for diagnostic in tree.diagnostics]
            )
        if tree.root is None:
            continue
        for at, body in _listed(tree.root, ()):
            try:
                typed = checked(body)
                _check_name_is_new(typed, names)
            except WrongManifest as wrong:
                place = (*at, *wrong.at)
                problem = InputProblem(
                    key=_key(place), what=wrong.what, cure=wrong.cure, line=_line(tree, place),
                    code=wrong.code,
                )  # fmt: skip
                raise InvalidInput(str(path), [problem]) from None
            yield typed


def _check_name_is_new(body: Object, names: set[tuple[str, str, str]]) -> None:
    metadata = body["metadata"]
    if not metadata.get("name"):
        return
    key = body["kind"], metadata.get("namespace") or "default", metadata["name"]
    if key in names:
        what = f"is {metadata['name']!r}, as that of another {body['kind']}"
        raise WrongManifest(("metadata", "name"), what, "rename one of them", "duplicate-name")
    names.add(key)


def _documents(path: Path) -> Iterator[ParsedTree]:
    source = str(path)
    try:
        content = path.read_bytes()
    except OSError as error:
        what = f"cannot be read: {(error.strerror or str(error)).lower()}"
        raise _problem(path, "", what, "name a file") from None
    language = detect_formats(content, source)[0]
    check_size_for_format(len(content), source, language)
    text = decode_text(content, source)
    if language is FileFormat.JSON:
        yield read_json(text, source)
        return
    starts = [match.start() for match in _DOCUMENT.finditer(text)]
    bounds = [0, *starts, len(text)]
    for begin, end in pairwise(bounds):
        part = text[begin:end]
        body = part[3:] if part.startswith("---") else part
        if _CONTENT.search(body):
            # Empty lines in front keep the numbers of the lines.
            yield read_yaml("\n" * text.count("\n", 0, begin) + body, source)


def _located(tree: ParsedTree, diagnostic: Diagnostic) -> InputProblem:
    return InputProblem(
        key=_key(diagnostic.path), what=diagnostic.what, cure=diagnostic.cure,
        line=_line(tree, diagnostic.path), code=diagnostic.code,
    )  # fmt: skip


def _line(tree: ParsedTree, path: KeyPath) -> int | None:
    """Return the line of the nearest part that has one."""
    while path:
        line = tree.line_of(path)
        if line is not None:
            return line
        path = path[:-1]
    return None


def _key(path: KeyPath) -> str:
    text = ""
    for step in path:
        text += f"[{step}]" if isinstance(step, int) else f".{step}" if text else str(step)
    return text


def _listed(root: Any, at: KeyPath) -> Iterator[tuple[KeyPath, Any]]:
    """Yield an object, or the items of a list of objects."""
    if (
        isinstance(root, dict)
        and root.get("kind") in _LISTS
        and isinstance(root.get("items"), list)
    ):
        for index, item in enumerate(root["items"]):
            yield from _listed(item, (*at, "items", index))
    else:
        yield at, root
