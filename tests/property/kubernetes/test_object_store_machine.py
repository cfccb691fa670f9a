"""The store against a plain model: dictionaries, with the rules written out again."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from equipoise.adapters.kubernetes.api.errors import ApiError
from equipoise.adapters.kubernetes.api.resources import PODS
from equipoise.adapters.kubernetes.api.store import Change, ChangeKind, DeleteOptions, ObjectStore
from kubernetes_api import a_pod

NAMES = st.sampled_from(["a", "b", "c"])


class StoreMachine(RuleBasedStateMachine):
    """Pods of one namespace; the model says node, label, finalizers and the end of each."""

    def __init__(self) -> None:
        super().__init__()
        self.now_ms = 0
        self.store = ObjectStore(lambda: self.now_ms)
        self.model: dict[str, dict[str, Any]] = {}
        self.changes: list[Change] = []
        self.store.subscribe(self.changes.append, PODS)
        self.seen: dict[str, dict[str, Any]] = {}
        self.read = 0

    def refused(self, code: int, act: Any) -> None:
        version = self.store.version
        with pytest.raises(ApiError) as error:
            act()
        assert (error.value.code, self.store.version) == (code, version)

    @rule(ms=st.integers(1, 5000))
    def wait(self, ms: int) -> None:
        self.now_ms += ms

    @rule(name=NAMES, holds=st.booleans())
    def create(self, name: str, holds: bool) -> None:
        body = a_pod(name)
        body["metadata"]["finalizers"] = ["x/y"] if holds else []
        if name in self.model:
            self.refused(409, lambda: self.store.create(PODS, body))
            return
        self.store.create(PODS, body)
        self.model[name] = {"node": "", "label": "", "holds": holds, "dying": None}

    @rule(name=NAMES, node=st.sampled_from(["n1", "n2"]))
    def bind(self, name: str, node: str) -> None:
        pod = self.model.get(name)
        if pod is None:
            self.refused(404, lambda: self.store.bind("default", name, node))
        elif pod["node"] or pod["dying"] is not None:
            self.refused(409, lambda: self.store.bind("default", name, node))
        else:
            self.store.bind("default", name, node)
            pod["node"] = node

    @rule(name=NAMES, label=st.sampled_from(["x", "y"]), is_stale=st.booleans())
    def replace(self, name: str, label: str, is_stale: bool) -> None:
        found = self.store.find(PODS, name, "default")
        if found is None:
            self.refused(404, lambda: self.store.replace(PODS, a_pod(name)))
            return
        metadata = {**found["metadata"], "labels": {"l": label}}
        if is_stale:
            metadata["resourceVersion"] = "1"
            self.refused(409, lambda: self.store.replace(PODS, {**found, "metadata": metadata}))
            return
        before = self.store.version
        self.store.replace(PODS, {**found, "metadata": metadata})
        changed = self.model[name]["label"] != label
        assert self.store.version - before == changed
        self.model[name]["label"] = label

    @rule(name=NAMES)
    def release(self, name: str) -> None:
        if name in self.model:
            self.store.update(
                PODS, name, "default",
                lambda pod: {**pod, "metadata": {**pod["metadata"], "finalizers": []}},
            )  # fmt: skip
            if self.model[name]["dying"] == 0 and self.model[name]["holds"]:
                del self.model[name]
            else:
                self.model[name]["holds"] = False

    @rule(name=NAMES, grace=st.sampled_from([None, 0, 1, 60]), is_dry=st.booleans())
    def delete(self, name: str, grace: int | None, is_dry: bool) -> None:
        pod = self.model.get(name)
        if pod is None:
            self.refused(404, lambda: self.store.delete(PODS, name, "default", grace_s=grace))
            return
        before = self.store.version
        options = DeleteOptions(dry_run=is_dry)
        self.store.delete(PODS, name, "default", grace_s=grace, options=options)
        if is_dry:
            assert self.store.version == before
            return
        wanted = 0 if not pod["node"] else 30 if grace is None else grace
        if pod["dying"] is not None:
            wanted = min(wanted, pod["dying"])
        if wanted == 0 and not pod["holds"]:
            del self.model[name]
        else:
            pod["dying"] = wanted

    @invariant()
    def the_store_is_the_model(self) -> None:
        found = {pod["metadata"]["name"]: pod for pod in self.store.list(PODS)}
        assert set(found) == set(self.model)
        for name, wanted in self.model.items():
            metadata, spec = found[name]["metadata"], found[name]["spec"]
            assert spec.get("nodeName", "") == wanted["node"]
            assert (metadata.get("labels") or {}).get("l", "") == wanted["label"]
            assert bool(metadata.get("finalizers")) == wanted["holds"]
            assert metadata.get("deletionGracePeriodSeconds") == wanted["dying"]
            assert metadata["generation"] == 1

    @invariant()
    def the_changes_lead_to_the_content(self) -> None:
        for change in self.changes[self.read :]:
            name = change.object["metadata"]["name"]
            assert str(change.version) == change.object["metadata"]["resourceVersion"]
            assert change.old == self.seen.get(name)
            if change.kind is ChangeKind.DELETED:
                del self.seen[name]
            else:
                assert (change.kind is ChangeKind.ADDED) == (name not in self.seen)
                self.seen[name] = change.object
        self.read = len(self.changes)
        assert self.seen == {pod["metadata"]["name"]: pod for pod in self.store.list(PODS)}


TestStoreMachine = StoreMachine.TestCase
