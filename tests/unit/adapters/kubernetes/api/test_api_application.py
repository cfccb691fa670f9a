from __future__ import annotations

import json
from typing import Any

import pytest

from equipoise.adapters.kubernetes.api.app import RequestRecord
from equipoise.adapters.kubernetes.api.resources import ALL_RESOURCES, NODES, PODS
from equipoise.adapters.kubernetes.api.server import ServerOptions
from kubernetes_api import (
    JSON_PATCH,
    MERGE,
    PODS_PATH,
    TABLE,
    InProcessApi,
    a_node,
    a_pod,
)

PROTOBUF = "application/vnd.kubernetes.protobuf"


def test_a_write_in_protobuf_is_refused_and_the_flag_is_named() -> None:
    with InProcessApi() as api:
        answer = api.request("POST", PODS_PATH, b"k8s\x00x", PROTOBUF)
        assert answer.status == 415
        assert "--kube-api-content-type=application/json" in answer.body["message"]
        review = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"
        allowed = api.request("POST", review, b"k8s\x00x", PROTOBUF)
        assert allowed.body["status"]["allowed"] is True


@pytest.mark.parametrize(
    ("accept", "status"),
    [
        (PROTOBUF, 406),
        (f"{PROTOBUF}, */*", 200),
        (f"{PROTOBUF},application/json", 200),
        ("text/html", 406),
        ("", 200),
        ("application/yaml", 200),
    ],
)
def test_the_form_of_an_answer_is_agreed(accept: str, status: int) -> None:
    with InProcessApi() as api:
        assert api.get("/api/v1/pods", accept).status == status


@pytest.mark.parametrize(
    ("path", "status"),
    [
        ("/api/v1/pods/p", 404),
        ("/api/v1/namespaces/default/nodes", 404),
        ("/api/v1/nothing", 404),
        ("/apis/apps/v2/deployments", 404),
        ("/api/v1/namespaces/default/pods/p/nothing", 404),
        ("/api/v1/namespaces/default/pods/none", 404),
        ("/api/v1/namespaces/default/pods/none/log", 404),
        ("/elsewhere", 404),
        ("/api/v1/pods?limit=x", 400),
        ("/api/v1/pods?continue=x", 400),
        ("/api/v1/pods?resourceVersion=x", 400),
        ("/api/v1/pods?labelSelector=(", 400),
        ("/api/v1/pods?resourceVersionMatch=Exact", 422),
        ("/api/v1/pods?resourceVersionMatch=Exact&resourceVersion=0", 422),
        ("/api/v1/pods?watch=maybe", 400),
        ("/api/v1/namespaces/default", 200),
        ("/api/v1/watch/pods?timeoutSeconds=x", 400),
    ],
)
def test_a_path_or_an_option_is_answered_or_refused(path: str, status: int) -> None:
    with InProcessApi() as api:
        answer = api.get(path)
        assert answer.status == status
        if status >= 400:
            assert (answer.body["kind"], answer.body["code"]) == ("Status", status)


@pytest.mark.parametrize(
    ("body", "code", "reason"),
    [
        (b"{", 400, "BadRequest"),
        (b"[]", 400, "BadRequest"),
        (b"", 400, "BadRequest"),
        (b'{"kind":"Node"}', 400, "BadRequest"),
        (b'{"metadata":{"name":"p"},"spec":5}', 400, "BadRequest"),
        (b'{"metadata":{"name":"p","labels":{"a":1}}}', 400, "BadRequest"),
        (b'{"metadata":{"name":"p"}}', 422, "Invalid"),
        (b"[" * 5000, 400, "BadRequest"),
        (b'{"metadata":{"name":"p","namespace":"other"}}', 400, "BadRequest"),
        (json.dumps({**a_pod("p"), "metadata": {"name": "p"}}).encode(), 409, "AlreadyExists"),
    ],
)
def test_a_body_that_is_wrong_is_refused(body: bytes, code: int, reason: str) -> None:
    with InProcessApi() as api:
        api.store.create(PODS, a_pod("p"))
        answer = api.post(PODS_PATH, body)
        assert (answer.status, answer.reason) == (code, reason)


def test_unknown_fields_are_dropped_reported_or_refused() -> None:
    with InProcessApi() as api:
        pod = a_pod("p")
        pod["spec"]["replicaz"] = 3
        refused = api.post(f"{PODS_PATH}?fieldValidation=Strict", pod)
        assert refused.status == 400
        assert 'unknown field "spec.replicaz"' in refused.body["message"]
        warned = api.post(f"{PODS_PATH}?fieldValidation=Warn", pod)
        assert warned.headers["warning"].startswith("299 - ")
        assert "replicaz" not in warned.body["spec"]


def test_a_client_does_not_choose_the_status_of_a_new_pod() -> None:
    with InProcessApi() as api:
        pod = {**a_pod("p"), "status": {"phase": "Running"}}
        assert api.post(PODS_PATH, pod).body["status"]["phase"] == "Pending"
        assert api.post("/api/v1/nodes", a_node("n")).body["status"]["capacity"]["cpu"] == "4"


def test_quantities_may_be_numbers() -> None:
    with InProcessApi() as api:
        pod = a_pod("p")
        pod["spec"]["containers"][0]["resources"] = {"requests": {"cpu": 0.5, "memory": 1024}}
        stored = api.post(PODS_PATH, pod).body
        amounts = stored["spec"]["containers"][0]["resources"]["requests"]
        assert amounts == {"cpu": "500m", "memory": "1024"}


def test_yaml_bodies_are_read_and_repetitions_are_refused() -> None:
    with InProcessApi() as api:
        text = b"metadata: {name: c}\ndata:\n  a: 'yes'\n"
        path = "/api/v1/namespaces/default/configmaps"
        assert api.request("POST", path, text, "application/yaml").body["data"] == {"a": "yes"}
        bomb = b"a: &a [1,1,1,1,1,1,1,1,1]\n" + b"".join(
            b"%c: &%c [%s]\n" % (98 + level, 98 + level, b",".join([b"*%c" % (97 + level)] * 9))
            for level in range(9)
        )
        assert api.request("POST", path, bomb, "application/yaml").status == 400


def test_large_bodies_are_refused() -> None:
    with InProcessApi(ServerOptions(body_bytes_max=100, stored_objects_max=10)) as api:
        assert api.post(PODS_PATH, b" " * 101).status == 413
        for index in range(20):
            body = {"metadata": {"name": f"c{index}"}}
            answer = api.post("/api/v1/namespaces/default/configmaps", body)
        assert answer.status == 403


def test_a_token_is_compared_and_pages_of_browsers_are_refused() -> None:
    with InProcessApi(ServerOptions(host="0.0.0.0", token="s3cret")) as api:
        for given, status in (("", 401), ("Bearer x", 401), ("Bearer s3cret", 200)):
            headers = {"authorization": given} if given else {}
            assert api.request("GET", "/api/v1/pods", headers=headers).status == status
        assert api.request("GET", "/version").status == 401
    with InProcessApi() as api:
        for name, value, status in (
            ("host", "localhost:80", 200), ("host", "127.0.0.1:80", 200), ("host", "[::1]:80", 200),
            ("host", "evil.example:80", 403), ("origin", "http://evil.example", 403),
        ):  # fmt: skip
            assert api.request("GET", "/version", headers={name: value}).status == status


def test_every_request_is_recorded_with_its_body_and_its_answer() -> None:
    with InProcessApi() as api:
        records: list[RequestRecord] = []
        api.server.on_request = records.append
        api.post(PODS_PATH, a_pod("p"))
        binding = {"target": {"kind": "Node", "name": "n"}}
        assert api.post(f"{PODS_PATH}/p/binding?dryRun=All", binding).status == 201
        assert api.post(f"{PODS_PATH}/p/binding", binding).status == 201
        assert (
            api.post(
                "/api/v1/namespaces/default/bindings", {"metadata": {"name": "p"}, **binding}
            ).status
            == 409
        )
        assert [record.status for record in records] == [201, 201, 201, 409]
        assert records[1].query == "dryRun=All"
        assert records[2].body == binding
        assert api.server.requests_total == 4


def test_patches_change_and_conflict() -> None:
    with InProcessApi() as api:
        first = api.post(PODS_PATH, a_pod("p", labels={"a": "b"})).body["metadata"]
        path = f"{PODS_PATH}/p"
        test = {"op": "test", "path": "/metadata/labels/a", "value": "x"}
        assert api.patch(path, [test], JSON_PATCH).status == 422
        stale = {"metadata": {"resourceVersion": "1", "labels": {"c": "d"}}}
        assert api.patch(path, stale, MERGE).status == 409
        fresh = {"metadata": {"resourceVersion": first["resourceVersion"], "labels": {"a": None}}}
        assert api.patch(path, fresh, MERGE).body["metadata"]["labels"] == {}
        assert api.patch(path, {}, "text/x").status == 415
        assert api.patch(path, {"metadata": {"name": "q"}}, MERGE).status == 400
        same = api.get(path).body
        assert api.patch(path, {"metadata": {}}).body == same


def test_a_scale_is_read_and_changed() -> None:
    with InProcessApi() as api:
        template = {"metadata": {"labels": {"a": "b"}}, "spec": a_pod()["spec"]}
        spec: dict[str, Any] = {"selector": {"matchLabels": {"a": "b"}}, "template": template}
        path = "/apis/apps/v1/namespaces/default/deployments"
        api.post(path, {"metadata": {"name": "d"}, "spec": spec})
        scale = api.get(f"{path}/d/scale").body
        assert (scale["spec"], scale["status"]["selector"]) == ({"replicas": 1}, "a=b")
        scale["spec"]["replicas"] = 4
        assert api.put(f"{path}/d/scale", scale).body["spec"]["replicas"] == 4
        assert api.put(f"{path}/d/scale", scale).status == 409
        changed = api.patch(f"{path}/d/scale", {"spec": {"replicas": 2}}, MERGE).body
        assert changed["spec"]["replicas"] == 2
        assert api.patch(f"{path}/d/scale", {"spec": {"replicas": -2}}, MERGE).status == 422
        assert api.get(f"{path}/d").body["metadata"]["generation"] == 3


def test_collections_are_deleted_by_selectors_and_preconditions_are_kept() -> None:
    with InProcessApi() as api:
        for name, label in (("a", "x"), ("b", "x"), ("c", "y")):
            api.post(PODS_PATH, a_pod(name, labels={"l": label}))
        deleted = api.delete(f"{PODS_PATH}?labelSelector=l%3Dx").body
        assert [item["metadata"]["name"] for item in deleted["items"]] == ["a", "b"]
        wrong = {"preconditions": {"uid": "other"}}
        assert api.delete(f"{PODS_PATH}/c", wrong).status == 409
        dry = api.delete(f"{PODS_PATH}/c", {"dryRun": ["All"]})
        assert dry.status == 200
        assert api.delete(f"{PODS_PATH}/c", {"propagationPolicy": "Never"}).status == 422
        assert api.delete(f"{PODS_PATH}/c").status == 200
        assert api.get(PODS_PATH).body["items"] == []


def test_every_collection_is_discovered_and_answers() -> None:
    with InProcessApi() as api:
        listed = set()
        groups = api.get("/apis").body["groups"]
        roots = ["/api/v1"]
        roots += [f"/apis/{each['groupVersion']}" for group in groups for each in group["versions"]]
        for root in roots:
            resources = api.get(root).body["resources"]
            for resource in resources:
                if "list" in resource["verbs"]:
                    path = f"{root}/{resource['name']}"
                    body = api.get(path).body
                    assert body["kind"] == f"{resource['kind']}List"
                    assert api.get(path, TABLE).body["columnDefinitions"][0]["type"] == "string"
                    listed.add(resource["name"])
        assert listed == {resource.plural for resource in ALL_RESOURCES}


@pytest.mark.parametrize("version", ["v2", "v2beta1"])
def test_aggregated_discovery_names_the_same_collections(version: str) -> None:
    accept = f"application/json;g=apidiscovery.k8s.io;v={version};as=APIGroupDiscoveryList"
    with InProcessApi() as api:
        answers = [api.get(path, f"{accept},application/json") for path in ("/api", "/apis")]
        names = {
            resource["resource"]
            for answer in answers
            for item in answer.body["items"]
            for each in item["versions"]
            for resource in each["resources"]
        }
        assert {resource.plural for resource in ALL_RESOURCES} < names
        assert f"v={version}" in answers[0].headers["content-type"]
        assert answers[0].body["apiVersion"] == f"apidiscovery.k8s.io/{version}"
        assert api.get("/api").body["versions"] == ["v1"]


def test_the_types_are_described_for_every_kind_and_no_reference_is_open() -> None:
    with InProcessApi() as api:
        index = api.get("/openapi/v3").body["paths"]
        for entry in index.values():
            path = entry["serverRelativeURL"].partition("?")[0]
            text = api.get(path).content.decode()
            schemas = json.loads(text)["components"]["schemas"]
            references = {part.split('"')[0] for part in text.split("#/components/schemas/")[1:]}
            assert references <= set(schemas)
        kinds = [
            kind["kind"]
            for schema in api.get("/openapi/v2").body["definitions"].values()
            for kind in schema.get("x-kubernetes-group-version-kind", ())
        ]
        assert {resource.kind for resource in ALL_RESOURCES} <= set(kinds)
        old = "application/com.github.proto-openapi.spec.v2@v1.0+protobuf"
        content = api.get("/openapi/v2", old).content
        assert content.startswith(b"\x0a\x032.0")
        # A client of before 1.27 looks here before it asks for a dry run, or for `kubectl diff`.
        assert content.count(b"dryRun") == api.get("/openapi/v2").content.count(b'"dryRun"')


@pytest.mark.parametrize("document", ["/openapi/v2", "/openapi/v3/apis/apps/v1"])
def test_every_part_of_a_path_is_described(document: str) -> None:
    """Without it, tools that read the document refuse it."""
    with InProcessApi() as api:
        paths = api.get(document).body["paths"]
        for path, item in paths.items():
            described = {each["name"] for each in item.get("parameters", ())}
            assert described == {part[1:-1] for part in path.split("/") if part.startswith("{")}
        assert len(paths) > 5


def test_health_and_version_answer() -> None:
    with InProcessApi() as api:
        for path in ("/healthz", "/livez", "/readyz"):
            assert api.get(path).content == b"ok"
            assert b"[+]ping ok" in api.get(f"{path}?verbose").content
        assert api.get("/version").body["minor"] == "36"


def test_tables_have_ages_in_virtual_time_and_the_requested_object() -> None:
    with InProcessApi() as api:
        api.store.create(NODES, a_node("n", spec={"unschedulable": True}))
        api.now_ms = 7_500_000
        (row,) = api.get("/api/v1/nodes", TABLE).body["rows"]
        assert row["cells"][:4] == ["n", "Ready,SchedulingDisabled", "<none>", "125m"]
        assert row["object"]["kind"] == "PartialObjectMetadata"
        (row,) = api.get("/api/v1/nodes?includeObject=Object", TABLE).body["rows"]
        assert row["object"]["spec"] == {"unschedulable": True}
        (row,) = api.get("/api/v1/nodes?includeObject=None", TABLE).body["rows"]
        assert "object" not in row
        partial = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"
        assert list(api.get("/api/v1/nodes", partial).body["items"][0]) == [
            "kind", "apiVersion", "metadata",
        ]  # fmt: skip
