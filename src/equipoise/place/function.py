"""``entitlement`` as a function of the specification language, added as anybody may add one."""

from __future__ import annotations

from typing import Any, Final

from equipoise.model.change.draft import Draft
from equipoise.model.quantity import VmId
from equipoise.place.entitlement import CPU, MEMORY, Resource, entitlements
from equipoise.spec.extend import function
from equipoise.spec.view import View

RESOURCES: Final[dict[str, Resource]] = {"cpu": CPU, "memory": MEMORY}


@function("(vm, string) -> int", "what the VM deserves of the cluster's cpu or memory now")
def entitlement(view: View, vm: Any, resource: str) -> int:
    """What a VM deserves; nothing of other resources, and nothing if it does not run."""
    if resource not in RESOURCES:
        return 0
    view.everything()
    return int(_LATEST.of(view.state, resource).get(vm, 0))


class _Latest:
    """The last answers: a formula asks for all VMs of one state, one after the other."""

    def __init__(self) -> None:
        self._key: tuple[Draft, int] | None = None
        self._found: dict[str, dict[VmId, float]] = {}

    def of(self, state: Draft, resource: str) -> dict[VmId, float]:
        if self._key is None or self._key[0] is not state or self._key[1] != state.version:
            self._key, self._found = (state, state.version), {}
        if resource not in self._found:
            settings = state.settings
            self._found[resource] = entitlements(
                state.hosts.values(), state.vms.values(), settings.pools, RESOURCES[resource]
            )
        return self._found[resource]


_LATEST: Final = _Latest()
