from __future__ import annotations

from typing import Any

import pytest

from equipoise.adapters.kubernetes.api.errors import ApiError
from equipoise.adapters.kubernetes.api.resources import (
    SERVED_VERSIONS,
)
from equipoise.adapters.kubernetes.api.selectors import label_selector, selector, selector_of

LABELS = {"app": "web", "tier": "front", "empty": "", "size": "12", "example.com/x": "y"}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", True),
        ("app=web", True),
        ("app==web,tier=front", True),
        ("app=web,tier=back", False),
        ("app!=web", False),
        ("missing!=web", True),
        ("app", True),
        ("!app", False),
        ("! missing", True),
        ("empty=", True),
        ("app in (web, db)", True),
        ("app in (db)", False),
        ("app notin (db),tier in (front)", True),
        ("missing notin (db)", True),
        ("missing in (db)", False),
        ("example.com/x=y", True),
        ("size>11", True),
        ("size<12", False),
        ("app>1", False),
    ],
)
def test_a_label_selector_selects(text: str, expected: bool) -> None:
    matches = label_selector(text)
    assert (matches is None or matches(LABELS)) is expected


@pytest.mark.parametrize(
    "text", ["=", "a=b=c", "a in b", "a in (b", ",", "a,,b", "a b", "é=x", "a=é", "a/b/c=d", "a>x"]
)
def test_a_label_selector_that_cannot_be_read_is_refused(text: str) -> None:
    with pytest.raises(ApiError) as error:
        label_selector(text)
    assert error.value.code == 400


def pod(**fields: Any) -> dict[str, Any]:
    return {"metadata": {"name": "p", "namespace": "d"}, **fields}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("metadata.name=p", True),
        ("metadata.name!=p", False),
        ("metadata.namespace=d,spec.nodeName=n", True),
        ("spec.nodeName=", False),
        ("status.phase!=Succeeded,status.phase!=Failed", True),
        ("status.phase=Running", False),
        ("spec.hostNetwork=false", True),
        ("status.nominatedNodeName=", True),
    ],
)
def test_a_field_selector_selects(text: str, expected: bool) -> None:
    matches = selector(SERVED_VERSIONS["", "v1", "pods"], "", text)
    assert matches is not None
    assert matches(pod(spec={"nodeName": "n"}, status={"phase": "Pending"})) is expected


def test_fields_have_the_names_of_the_group_version() -> None:
    event = pod(involvedObject={"kind": "Pod", "name": "p"}, reason="Scheduled")
    core = selector(
        SERVED_VERSIONS["", "v1", "events"], "", "involvedObject.name=p,reason=Scheduled"
    )
    other = selector(SERVED_VERSIONS["events.k8s.io", "v1", "events"], "", "regarding.name=p")
    assert core is not None
    assert other is not None
    assert core(event)
    assert other(event)


@pytest.mark.parametrize("text", ["spec.foo=x", "metadata.name", "spec.nodeName=n", "="])
def test_a_field_that_a_collection_does_not_offer_is_refused(text: str) -> None:
    with pytest.raises(ApiError) as error:
        selector(SERVED_VERSIONS["", "v1", "nodes"], "", text)
    assert error.value.code == 400


def test_a_selector_object_selects_by_labels_and_expressions() -> None:
    expressions = [
        {"key": "tier", "operator": "In", "values": ["front"]},
        {"key": "tier", "operator": "NotIn", "values": ["back"]},
        {"key": "app", "operator": "Exists"},
        {"key": "none", "operator": "DoesNotExist"},
    ]
    assert selector_of({"matchLabels": {"app": "web"}, "matchExpressions": expressions})(LABELS)
    assert not selector_of({"matchExpressions": [{"key": "a", "operator": "Gt"}]})(LABELS)
    assert selector_of({})(LABELS)
    assert selector_of(None)(LABELS)
