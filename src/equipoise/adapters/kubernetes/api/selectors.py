"""Label selectors and field selectors, as text in a request and as objects in a specification.

A selector becomes one function of a stored object. Texts are few and repeat, so the functions of
the last ones are kept.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from functools import lru_cache
from typing import Any, Final

from equipoise.adapters.kubernetes.api.errors import bad_request
from equipoise.adapters.kubernetes.api.resources import (
    EVENTS,
    JOBS,
    NAMESPACES,
    NODES,
    PODS,
    REPLICA_SETS,
    REPLICATION_CONTROLLERS,
    SECRETS,
    ServedVersion,
)

Object = dict[str, Any]
Matches = Callable[[Object], bool]
LabelMatches = Callable[[Mapping[str, str]], bool]

_SET: Final = re.compile(r"(?P<key>[^\s(),=<>!]+)\s+(?P<sign>in|notin)\s*\((?P<values>[^()]*)\)")
_EXISTS: Final = re.compile(r"(?P<not>!?)\s*(?P<key>[^\s(),=<>!]+)")
_SIGN: Final = re.compile(
    r"(?P<key>[^\s(),=<>!]+)\s*(?P<sign>==|=|!=|<|>)\s*(?P<value>[^\s(),=<>!]*)"
)
# A key and a value are at most this long, so that no text is scanned again and again.
_KEY: Final = re.compile(r"(?=.{1,317}$)(?:[a-z0-9][-a-z0-9.]*/)?[A-Za-z0-9][-A-Za-z0-9_.]*")
_VALUE: Final = re.compile(r"(?=.{0,63}$)[-A-Za-z0-9_.]*")
_NUMBER: Final = re.compile(r"-?[0-9]{1,18}")
_CACHED: Final = 1024

_EVENT_FIELDS: Final = tuple(
    f"involvedObject.{name}"
    for name in ("kind", "namespace", "name", "uid", "apiVersion", "resourceVersion", "fieldPath")
)
_FIELDS: Final[Mapping[Any, tuple[str, ...]]] = {
    PODS: (
        "spec.nodeName", "spec.restartPolicy", "spec.schedulerName", "spec.serviceAccountName",
        "spec.hostNetwork", "status.phase", "status.podIP", "status.nominatedNodeName",
    ),
    NODES: ("spec.unschedulable",),
    EVENTS: (
        *_EVENT_FIELDS, "reason", "type", "source", "reportingComponent", "reportingController",
    ),
    NAMESPACES: ("status.phase",),
    SECRETS: ("type",),
    JOBS: ("status.successful",),
    REPLICA_SETS: ("status.replicas",),
    REPLICATION_CONTROLLERS: ("status.replicas",),
}  # fmt: skip
_STORED_PATHS: Final = {
    "source": ("source", "component"),
    "status.successful": ("status", "succeeded"),
    "reportingController": ("reportingComponent",),
}
# What an absent field counts as. Other fields count as empty text.
_ABSENT: Final = {
    "spec.unschedulable": "false",
    "spec.hostNetwork": "false",
    "status.successful": "0",
    "status.replicas": "0",
}


@lru_cache(_CACHED)
def label_selector(text: str) -> LabelMatches | None:
    """Return the function of a label selector; None if it selects everything."""
    tests = [_label_requirement(part) for part in _requirements(text)]
    if len(tests) < 2:  # noqa: PLR2004
        return tests[0] if tests else None
    return lambda labels: all(test(labels) for test in tests)


def _requirements(text: str) -> Iterator[str]:
    """Yield the requirements of a label selector: commas separate them, but not inside sets."""
    if not text.strip():
        return
    part = ""
    for piece in text.split(","):
        part = f"{part},{piece}" if part else piece
        if part.count("(") <= part.count(")"):
            yield part.strip()
            part = ""
    if part:
        yield part.strip()


def _label_requirement(text: str) -> LabelMatches:
    if found := _SET.fullmatch(text):
        key, values = found["key"], {value.strip() for value in found["values"].split(",")}
        if _KEY.fullmatch(key) and all(_VALUE.fullmatch(value) for value in values):
            return _membership(key, values, is_in=found["sign"] == "in")
    elif found := _EXISTS.fullmatch(text):
        key, is_absent = found["key"], bool(found["not"])
        if _KEY.fullmatch(key):
            return lambda labels: (key in labels) is not is_absent
    elif found := _SIGN.fullmatch(text):
        key, sign, value = found["key"], found["sign"], found["value"]
        if _KEY.fullmatch(key) and sign in "<>" and _NUMBER.fullmatch(value):
            return _comparison(key, int(value), greater=sign == ">")
        if _KEY.fullmatch(key) and sign not in "<>" and _VALUE.fullmatch(value):
            is_other = sign == "!="
            return lambda labels: (labels.get(key) == value) is not is_other
    raise bad_request(f"unable to parse requirement: {text[:200]!r}")


def _membership(key: str, values: set[str], *, is_in: bool) -> LabelMatches:
    if is_in:
        return lambda labels: key in labels and labels[key] in values
    return lambda labels: labels.get(key) not in values


def _comparison(key: str, bound: int, *, greater: bool) -> LabelMatches:
    def test(labels: Mapping[str, str]) -> bool:
        text = labels.get(key, "")
        if not re.fullmatch(r"[-+]?[0-9]{1,18}", text):
            return False
        return int(text) > bound if greater else int(text) < bound

    return test


def selector_of(specification: Object | None) -> LabelMatches:
    """Return the function of a ``LabelSelector`` object: an empty one selects everything."""
    wanted = specification or {}
    tests = [
        _membership(key, {value}, is_in=True)
        for key, value in (wanted.get("matchLabels") or {}).items()
    ]
    tests += [_expression(expression) for expression in wanted.get("matchExpressions") or ()]
    return lambda labels: all(test(labels) for test in tests)


def _expression(expression: Object) -> LabelMatches:
    key, values = expression.get("key", ""), set(expression.get("values") or [])
    match expression.get("operator"):
        case "In":
            return _membership(key, values, is_in=True)
        case "NotIn":
            return _membership(key, values, is_in=False)
        case "Exists":
            return lambda labels: key in labels
        case "DoesNotExist":
            return lambda labels: key not in labels
    return lambda labels: False


@lru_cache(_CACHED)
def selector(served: ServedVersion, labels_text: str, fields_text: str) -> Matches | None:
    """Return the function of both selectors of a request; None if they select everything."""
    labels = label_selector(labels_text)
    fields = _field_selector(served, fields_text)
    if labels is None:
        return fields
    by_labels = labels

    def matches_labels(stored: Object) -> bool:
        return by_labels(stored["metadata"].get("labels") or {})

    if fields is None:
        return matches_labels
    by_fields = fields
    return lambda stored: by_fields(stored) and matches_labels(stored)


def _field_selector(served: ServedVersion, text: str) -> Matches | None:
    tests = [_field_requirement(served, part.strip()) for part in text.split(",") if part.strip()]
    if not tests:
        return None
    if len(tests) == 1:
        return tests[0]
    return lambda stored: all(test(stored) for test in tests)


def _field_requirement(served: ServedVersion, text: str) -> Matches:
    found = re.fullmatch(r"([^=!]+?)\s*(==|=|!=)\s*(.*)", text)
    if found is None:
        raise bad_request(f"invalid selector: {text!r}; can't understand {text!r}")
    name, sign, value = found.groups()
    wanted = (sign == "!=", re.sub(r"\\([\\,=])", r"\1", value))
    path = _stored_path(served, name)
    absent = _ABSENT.get(name, "")
    if len(path) == 1:
        (first,) = path
        return lambda stored: (_text(stored.get(first), absent) == wanted[1]) is not wanted[0]
    first, second = path

    def test(stored: Object) -> bool:
        part = stored.get(first)
        found = part.get(second) if part else None
        return (_text(found, absent) == wanted[1]) is not wanted[0]

    return test


def _stored_path(served: ServedVersion, name: str) -> tuple[str, ...]:
    resource = served.resource
    if name == "metadata.name" or (name == "metadata.namespace" and resource.namespaced):
        return tuple(name.split("."))
    stored = name
    first, _, rest = name.partition(".")
    if first in served.stored_names:
        stored = served.stored_names[first] + (f".{rest}" if rest else "")
    if stored not in _FIELDS.get(resource, ()):
        raise bad_request(f"field label not supported: {name}")
    return _STORED_PATHS.get(stored, tuple(stored.split(".")))


def _text(value: object, absent: str) -> str:
    if value is None:
        return absent
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value)
