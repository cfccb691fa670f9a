"""Whatever a client sends, the answer is a Status or an object, never an error of the server."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import event, given
from hypothesis import strategies as st

from equipoise.adapters.kubernetes.api.resources import NODES, PODS, SERVED_VERSIONS, ServedVersion
from equipoise.adapters.kubernetes.api.schema.types import type_fields, type_of
from kubernetes_api import APPLY, JSON_PATCH, MERGE, STRATEGIC, TABLE, InProcessApi, a_node, a_pod

COLLECTIONS = sorted(
    {(each.group, each.version, plural) for (_, _, plural), each in SERVED_VERSIONS.items()}
)
FIELDS = sorted({field for fields in type_fields().values() for field in fields})
NAMES = st.sampled_from(["p", "n", "default", "x", "A", "a/b", "..", "%00", "é", ""])
PARTS = st.sampled_from(
    ["", "status", "scale", "binding", "eviction", "log", "finalize", "token", "x", "status/x"]
)
SCALARS = (
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=5)
    | st.sampled_from(["p", "default", "Pod", "v1", "1", "2Gi", "50%", "$patch"])
)  # fmt: skip
KEYS = st.sampled_from(
    [*FIELDS, "metadata", "metadata", "spec", "spec", "status", "name", "labels", "containers",
     "$patch", "$setElementOrder/containers", "$deleteFromPrimitiveList/finalizers", "$retainKeys"]
)  # fmt: skip
VALUES = st.recursive(
    SCALARS, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=4),
    max_leaves=15,
)  # fmt: skip
BODIES = (
    st.none()
    | st.binary(max_size=20)
    | VALUES.map(lambda value: json.dumps(value).encode())
    | st.tuples(VALUES, VALUES, VALUES).map(
        lambda parts: json.dumps(
            {"metadata": parts[0], "spec": parts[1], "status": parts[2]}
        ).encode()
    )
    | st.tuples(NAMES, VALUES, VALUES).map(
        lambda parts: json.dumps({**a_pod(parts[0] or "p"), "status": parts[1]}).encode()
    )
)
OPTIONS = st.sampled_from(
    ["labelSelector", "fieldSelector", "limit", "continue", "resourceVersion",
     "resourceVersionMatch", "dryRun", "fieldValidation", "fieldManager", "gracePeriodSeconds",
     "propagationPolicy", "includeObject", "timeoutSeconds"]
)  # fmt: skip
OPTION_VALUES = st.text(max_size=6) | st.sampled_from(
    ["0", "1", "-1", "99999999999999999999", "All", "Strict", "Warn", "Exact", "NotOlderThan",
     "a=b", "a in (b", "metadata.name=p", "x", "Foreground", "Orphan", "None", "Object",
     "eyJ2IjoibWV0YS5rOHMuaW8vdjEiLCJydiI6Nywic3RhcnQiOiJhIn0"]
)  # fmt: skip


@st.composite
def paths(draw: st.DrawFn) -> str:
    if draw(st.integers(0, 9)) == 0:
        return draw(st.text(st.characters(codec="utf-8"), max_size=12).map(lambda text: f"/{text}"))
    group, version, plural = draw(st.sampled_from(COLLECTIONS))
    path = f"/apis/{group}/{version}" if group else f"/api/{version}"
    if draw(st.integers(0, 9)) == 0:
        path += "/watch"
    if draw(st.booleans()):
        path += f"/namespaces/{draw(st.sampled_from(['default', 'x', '']))}"
    for part in (draw(st.sampled_from([plural, "pods", "nodes"])), draw(NAMES), draw(PARTS)):
        if part:
            path += f"/{part}"
    return path


@given(
    requests=st.lists(
        st.tuples(
            st.sampled_from(["GET", "POST", "PUT", "PATCH", "DELETE", "HEAD", "OPTIONS", "X"]),
            paths(),
            st.dictionaries(OPTIONS, OPTION_VALUES, max_size=3),
            BODIES,
            st.sampled_from(
                ["application/json", STRATEGIC, MERGE, JSON_PATCH, APPLY, "application/yaml", "",
                 "text/plain", "application/vnd.kubernetes.protobuf"]
            ),
            st.sampled_from(["", "*/*", TABLE, "application/yaml", "text/html", "a;as=;;="]),
        ),
        max_size=12,
    )
)  # fmt: skip
def test_no_request_is_an_error_of_the_server(requests: list[tuple[Any, ...]]) -> None:
    with InProcessApi() as api:
        api.store.create(PODS, a_pod("p"))
        api.store.create(NODES, a_node("n"))
        for method, path, options, body, content_type, accept in requests:
            query = "&".join(f"{key}={_quoted(value)}" for key, value in options.items())
            if "/watch" in path and method == "GET":
                api.watch(path, query, accept).events()
                continue
            answer = api.request(
                method, f"{path.replace('?', '')}?{query}", body, content_type, {"accept": accept}
            )
            # 504 is the answer to a version that the store has not reached.
            assert answer.status < 500 or answer.reason == "Timeout", api.server.bugs
            if answer.status >= 400:
                assert answer.body["kind"] == "Status"
                assert answer.body["code"] == answer.status
        # Nothing that was stored makes the collections unreadable.
        for group, version, plural in COLLECTIONS:
            root = f"/apis/{group}/{version}" if group else f"/api/{version}"
            assert api.get(f"{root}/{plural}", TABLE).status == 200


TEXTS = st.sampled_from(["a", "b", "", "Always", "Never", "In", "Exists", "True", "A b", "x.y/z"])
SIMPLE = {
    "s": TEXTS,
    "i": st.sampled_from([0, 1, -1, 7, 2**40]),
    "f": st.sampled_from([0.5, 2]),
    "b": st.booleans(),
    "t": st.sampled_from(["2026-01-01T00:00:00Z", "2026-01-01T00:00:00.5+01:00"]),
    "q": st.sampled_from(["1", "500m", "2Gi", "-1", "1e3", 3, 0.25]),
    "n": st.sampled_from([1, 0, "50%", "x"]),
    "x": SCALARS,
}


def typed(draw: Any, code: str, depth: int) -> Any:
    """Draw a value of a type, few levels deep."""
    code = code.removeprefix("!")
    if code in SIMPLE:
        return draw(SIMPLE[code])
    if code[0] == "[":
        count = draw(st.integers(0, 2)) if depth else 0
        return [typed(draw, code[1:-1], depth) for _ in range(count)]
    if code[0] == "{":
        return {key: typed(draw, code[1:-1], depth) for key in draw(st.sets(TEXTS, max_size=2))}
    fields = type_fields()[code] if depth else {}
    names = draw(st.lists(st.sampled_from(sorted(fields)), unique=True)) if fields else []
    needed = [name for name, inner in fields.items() if inner[0] == "!"]
    likely = [name for name in ("spec", "status", "template") if name in fields]
    chosen = dict.fromkeys([*needed, *likely, *names])
    return {name: typed(draw, fields[name], depth - 1) for name in chosen}


@given(
    data=st.data(),
    served=st.sampled_from([SERVED_VERSIONS[key] for key in sorted(SERVED_VERSIONS)]),
)
def test_any_object_with_the_right_types_is_stored_or_refused(
    data: st.DataObject, served: ServedVersion
) -> None:
    """And what is stored can be read, shown, changed and deleted."""
    body = typed(data.draw, type_of(served), 6)
    for key in ("kind", "apiVersion"):
        body.pop(key, None)
    body["metadata"] = {**body.get("metadata", {}), "name": "a", "namespace": "default"}
    body["metadata"].pop("resourceVersion", None)
    body["metadata"].pop("finalizers", None)
    if not served.resource.namespaced:
        del body["metadata"]["namespace"]
    root = f"/apis/{served.group}/{served.version}" if served.group else f"/api/{served.version}"
    within = "namespaces/default/" if served.resource.namespaced else ""
    path = f"{root}/{within}{served.resource.plural}"
    with InProcessApi() as api:
        stream = api.watch(path, "", TABLE)
        created = api.post(path, body)
        event(f"{served.resource.kind} {created.status}")
        assert created.status in (201, 403, 422), created.body
        if created.status == 201:
            for accept in (TABLE, "application/yaml", "application/json"):
                assert api.get(f"{path}/a", accept).status == 200
            stored = api.get(f"{path}/a").body
            assert api.put(f"{path}/a", stored).body == stored
            assert api.patch(f"{path}/a", stored, MERGE).body == stored
            assert api.patch(f"{path}/a", stored).status in (200, 400)
            assert api.patch(f"{path}/a", {"metadata": {"labels": {"l": "1"}}}).status in (200, 422)
            assert api.delete(f"{path}/a", {"gracePeriodSeconds": 0}).status == 200
            kinds = [event["type"] for event in stream.events()]
            assert (kinds[-2:], kinds.count("ADDED")) in (
                (["ADDED", "DELETED"], kinds.count("ADDED")),
                (["MODIFIED", "DELETED"], kinds.count("ADDED")),
            )


def _quoted(text: str) -> str:
    return "".join(f"%{byte:02X}" for byte in text.encode("utf-8", "replace"))
