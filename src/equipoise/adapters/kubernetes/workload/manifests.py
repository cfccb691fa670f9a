"""Plain manifests as a workload: YAML with one or more documents, JSON, or a folder of such files.

The annotation ``equipoise.dev/arrival`` says when an object is created; without it, at the start.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from itertools import pairwise
from pathlib import Path
from typing import Any, Final

from equipoise.adapters.kubernetes.annotations import (
    ARRIVAL,
    annotations_of,
    check_annotations,
    read_duration_ms,
)
from equipoise.adapters.kubernetes.api.resources import ALL_RESOURCES
from equipoise.adapters.kubernetes.quantity import parse_quantity
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
_KINDS: Final = {resource.kind: resource for resource in ALL_RESOURCES}
_LISTS: Final = frozenset({"List", *(f"{kind}List" for kind in _KINDS)})
_TEMPLATED: Final = frozenset({"Job", "Deployment", "ReplicaSet", "StatefulSet", "DaemonSet"})


def is_manifest(path: Path) -> bool:
    """True for a folder, or a name of YAML or JSON."""
    return path.is_dir() or path.name.lower().endswith(_SUFFIXES)


def read_manifests(path: Path) -> tuple[list[Object], list[Arrival]]:
    """Return the nodes, and all other objects with their times, in the order of the files."""
    nodes: list[Object] = []
    arrivals: list[Arrival] = []
    for file in _files(path):
        for body in _objects(file):
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


def _problem(path: Path, key: str, what: str, cure: str, line: int | None = None) -> InvalidInput:
    problem = InputProblem(key=key, what=what, cure=cure, line=line)
    return InvalidInput(str(path), [problem])


def _objects(path: Path) -> Iterator[Object]:
    """Yield the objects of a file, each of which is checked."""
    for tree in _documents(path):
        if tree.diagnostics:
            raise InvalidInput(
                str(path), [_located(tree, diagnostic) for diagnostic in tree.diagnostics]
            )
        if tree.root is None:
            continue
        for at, body in _listed(tree.root, ()):
            try:
                _check(body)
            except _Wrong as wrong:
                raise _problem(
                    path, _key((*at, *wrong.at)), wrong.what, wrong.cure,
                    _line(tree, (*at, *wrong.at)),
                ) from None  # fmt: skip
            yield body


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


class _Wrong(Exception):
    """A part of an object is wrong."""

    def __init__(self, at: KeyPath, what: str, cure: str) -> None:
        self.at, self.what, self.cure = at, what, cure


def _check(body: Any) -> None:
    if not isinstance(body, dict) or not isinstance(body.get("kind"), str):
        raise _Wrong((), "is no object with a kind", "write apiVersion, kind and metadata")
    resource = _KINDS.get(body["kind"])
    if resource is None:
        raise _Wrong(("kind",), f"is {body['kind']!r:.40}, which is not offered", "leave it out")
    if body.get("apiVersion") != resource.api_version:
        what = f"is {body.get('apiVersion')!r:.40}"
        raise _Wrong(("apiVersion",), what, f"write {resource.api_version}")
    metadata = body.get("metadata")
    if not isinstance(metadata, dict) or not (
        isinstance(metadata.get("name") or metadata.get("generateName"), str)
    ):
        raise _Wrong(("metadata",), "has no name", "write metadata.name")
    _check_annotations(metadata, ("metadata",))
    if body["kind"] == "Node":
        status = body.get("status")
        if not isinstance(status, dict):
            raise _Wrong((), "states no capacity", "write status.capacity")
        for key in ("capacity", "allocatable"):
            _check_amounts(status.get(key) or {}, ("status", key))
    elif body["kind"] == "Pod":
        _check_pod_spec(body.get("spec"), ("spec",))
    elif body["kind"] in _TEMPLATED:
        _check_template(body)


def _check_template(body: Object) -> None:
    spec = body.get("spec")
    template = spec.get("template") if isinstance(spec, dict) else None
    if not isinstance(template, dict):
        raise _Wrong(("spec",), "has no template", "write spec.template")
    metadata = template.get("metadata") or {}
    if not isinstance(metadata, dict):
        raise _Wrong(("spec", "template", "metadata"), "is no mapping", "write labels in it")
    _check_annotations(metadata, ("spec", "template", "metadata"))
    _check_pod_spec(template.get("spec"), ("spec", "template", "spec"))


def _check_annotations(metadata: Mapping[str, Any], at: KeyPath) -> None:
    annotations = metadata.get("annotations") or {}
    if not isinstance(annotations, dict):
        raise _Wrong((*at, "annotations"), "is no mapping", "write annotations with their values")
    for key, value in annotations.items():
        if not isinstance(value, str):
            what = f"is {value!r:.40}, not text"
            raise _Wrong((*at, "annotations", key), what, f'write "{value}" in quotes')
    try:
        check_annotations(annotations)
    except ValueError as error:
        name = str(error).partition(":")[0]
        cure = "write seconds, such as 90 or 2.5, or 1m30s"
        if not name.endswith(("arrival", "duration", "stop")):
            cure = "docs/kubernetes-workloads.md has the form of every annotation"
        raise _Wrong((*at, "annotations", name), str(error), cure) from None


def _check_pod_spec(spec: Any, at: KeyPath) -> None:
    if not isinstance(spec, dict) or not isinstance(spec.get("containers"), list):
        raise _Wrong(at, "has no list of containers", "write spec.containers")
    for key in ("containers", "initContainers"):
        for index, container in enumerate(spec.get(key) or ()):
            place = (*at, key, index)
            if not isinstance(container, dict):
                raise _Wrong(place, "is no container", "write name, image and resources")
            resources = container.get("resources") or {}
            if not isinstance(resources, dict):
                raise _Wrong((*place, "resources"), "is no mapping", "write requests and limits")
            for part in ("requests", "limits"):
                _check_amounts(resources.get(part) or {}, (*place, "resources", part))
    _check_amounts(spec.get("overhead") or {}, (*at, "overhead"))


def _check_amounts(amounts: Any, at: KeyPath) -> None:
    if not isinstance(amounts, dict):
        raise _Wrong(at, "is no mapping", "write amounts such as cpu: 500m")
    for name, amount in amounts.items():
        try:
            negative = parse_quantity(amount) < 0
        except ValueError as error:
            raise _Wrong((*at, name), str(error), "write 500m, 2 or 1Gi") from None
        if negative:
            raise _Wrong((*at, name), f"{amount!r:.40} is below 0", "write 500m, 2 or 1Gi")
