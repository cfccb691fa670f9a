"""Server-side apply: who owns a field, conflicts between managers, and how one takes over."""

from __future__ import annotations

from typing import Any

import pytest

from kubernetes_api import APPLY, PODS_PATH, InProcessApi, a_pod

Object = dict[str, Any]
PATH = "/apis/apps/v1/namespaces/default/deployments/web"


def deployment(replicas: int | None = None, image: str = "a:1", **labels: str) -> Object:
    spec: Object = {
        "selector": {"matchLabels": {"app": "web"}},
        "template": {
            "metadata": {"labels": {"app": "web"}},
            "spec": {"containers": [{"name": "c", "image": image}]},
        },
    }
    if replicas is not None:
        spec["replicas"] = replicas
    body: Object = {"apiVersion": "apps/v1", "kind": "Deployment", "spec": spec}
    return {**body, "metadata": {"name": "web", "labels": labels}}


def test_another_value_of_an_owned_field_is_a_conflict_that_names_field_and_manager() -> None:
    with InProcessApi() as api:
        api.patch(f"{PATH}?fieldManager=one", deployment(3, tier="x"), APPLY)
        refused = api.patch(f"{PATH}?fieldManager=two", deployment(5, image="a:2", tier="x"), APPLY)
        assert (refused.status, refused.reason) == (409, "Conflict")
        causes = refused.body["details"]["causes"]
        assert {(cause["reason"], cause["field"]) for cause in causes} == {
            ("FieldManagerConflict", ".spec.replicas"),
            ("FieldManagerConflict", '.spec.template.spec.containers[name="c"].image'),
        }
        assert all('"one"' in cause["message"] for cause in causes)
        assert api.get(PATH).body["spec"]["replicas"] == 3


def test_equal_values_are_shared_and_other_fields_are_free() -> None:
    with InProcessApi() as api:
        api.patch(f"{PATH}?fieldManager=one", deployment(3), APPLY)
        assert api.patch(f"{PATH}?fieldManager=two", deployment(3, a="b"), APPLY).status == 200
        # The field stays while the other manager applies it.
        assert api.patch(f"{PATH}?fieldManager=two", deployment(a="b"), APPLY).status == 200
        assert api.get(PATH).body["spec"]["replicas"] == 3
        # One that applies a field alone changes it.
        assert api.patch(f"{PATH}?fieldManager=one", deployment(4), APPLY).status == 200


def test_force_takes_a_field_over() -> None:
    with InProcessApi() as api:
        api.patch(f"{PATH}?fieldManager=one", deployment(3), APPLY)
        forced = api.patch(f"{PATH}?fieldManager=two&force=true", deployment(5), APPLY)
        assert (forced.status, forced.body["spec"]["replicas"]) == (200, 5)
        owners = [
            entry["manager"]
            for entry in forced.body["metadata"]["managedFields"]
            if "f:replicas" in entry["fieldsV1"]["f:spec"]
        ]
        assert owners == ["two"]
        # What it no longer owns, the first one leaves out without effect.
        assert api.patch(f"{PATH}?fieldManager=one", deployment(), APPLY).status == 200
        assert api.get(PATH).body["spec"]["replicas"] == 5
        assert api.patch(f"{PATH}?fieldManager=one", deployment(6), APPLY).status == 409


def test_a_value_of_before_another_write_is_a_conflict_only_between_managers() -> None:
    with InProcessApi() as api:
        body = {"apiVersion": "v1", "kind": "Pod", **a_pod(labels={"a": "1"})}
        assert api.patch(f"{PODS_PATH}/p?fieldManager=one", body, APPLY).status == 201
        api.patch(f"{PODS_PATH}/p", {"metadata": {"labels": {"a": "2"}}})
        again = api.patch(f"{PODS_PATH}/p?fieldManager=one", body, APPLY)
        assert (again.status, again.body["metadata"]["labels"]) == (200, {"a": "1"})


@pytest.mark.parametrize("fields", ["x", 3, [1], {"f:spec": 3}, {"f:spec": {"f:replicas": "x"}}])
@pytest.mark.parametrize("manager", ["one", "two"])
def test_owned_fields_that_a_client_has_spoilt_own_nothing_below(manager: str, fields: Any) -> None:
    with InProcessApi() as api:
        api.patch(f"{PATH}?fieldManager=one", deployment(3), APPLY)
        entry = {"manager": "one", "operation": "Apply", "fieldsV1": fields}
        body = {**api.get(PATH).body}
        body["metadata"] = {**body["metadata"], "managedFields": [entry]}
        assert api.put(PATH, body).status == 200
        assert (
            api.patch(f"{PATH}?fieldManager={manager}&force=true", deployment(), APPLY).status
            == 200
        )
