"""The hash of the bindings of a run: pods, times and nodes, without the order within an instant."""

from __future__ import annotations

from equipoise.adapters.kubernetes.api.resources import PODS
from equipoise.adapters.kubernetes.api.store import ObjectStore
from equipoise.adapters.kubernetes.run.moment import NS_PER_S, Moment
from equipoise.adapters.kubernetes.run.session import Bindings
from equipoise.adapters.kubernetes.workload.pod_workload import pod_object


def hash_of(*bindings: tuple[int, str, str]) -> str:
    """Return the hash of bindings: second, pod, node."""
    moment, store = Moment(), ObjectStore(lambda: 0)
    for _, name, _ in sorted(bindings):
        store.create(PODS, pod_object(name, cpu_milli=1), "default")
    found = Bindings(moment)
    store.subscribe(found.observe, PODS)
    for at_s, name, node in bindings:
        moment.advance(at_s * NS_PER_S)
        store.bind("default", name, node)
    assert found.count == len(bindings)
    assert found.sha256 == found.sha256
    return found.sha256


def test_bindings_of_one_instant_have_no_order() -> None:
    """A scheduler binds several pods at once, and their requests race."""
    first = hash_of((1, "a", "n"), (1, "b", "m"), (2, "c", "n"))
    assert hash_of((1, "b", "m"), (1, "a", "n"), (2, "c", "n")) == first


def test_another_node_or_time_is_another_hash() -> None:
    first = hash_of((1, "a", "n"), (1, "b", "m"))
    assert hash_of((1, "a", "m"), (1, "b", "n")) != first
    assert hash_of((1, "a", "n"), (2, "b", "m")) != first
    assert hash_of((1, "a", "n")) != first
