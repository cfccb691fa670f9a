"""The role state of a draft: writable, each map copied on its first write."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from equipoise.model.quantity import ProcessorId, RoleGroupId, SlotId
from equipoise.model.roles.state import (
    INITIAL_STATUS,
    GroupRole,
    ProcessorStatus,
    RoleFailures,
    RoleInstance,
    RoleState,
)
from equipoise.model.value import FrozenMap


class RoleStateDraft:
    """A writable copy of a ``RoleState``."""

    def __init__(self, base: RoleState) -> None:
        self.epoch = base.epoch
        self.held = base.held
        self.slots = base.slots
        self.statuses = base.statuses
        self.failures = base.failures
        self.pins = base.pins
        self._own: set[str] = set()
        self._frozen: RoleState | None = base

    def freeze(self) -> RoleState:
        """Return the role state. The draft stays usable and copies a map before its next write."""
        if self._frozen is None:
            self._frozen = RoleState(
                self.epoch, self.held, self.slots, self.statuses, self.failures, self.pins
            )
            self._own.clear()
        return self._frozen

    def raise_epoch(self, epoch: int) -> None:
        """Set the epoch of the leader, unless a higher one is known."""
        if epoch > self.epoch:
            self.epoch, self._frozen = epoch, None

    def status(self, processor: ProcessorId) -> ProcessorStatus:
        """Return the status of a processor."""
        status: ProcessorStatus = self.statuses.get(processor, INITIAL_STATUS)
        return status

    def put_status(self, processor: ProcessorId, status: ProcessorStatus) -> None:
        """Set the status of a processor."""
        if self.statuses.get(processor) != status:
            self.statuses, self._frozen = self.statuses.put(processor, status), None

    def add_held(self, processor: ProcessorId, group_role: GroupRole) -> None:
        """Add a running role to a processor."""
        roles = self.held.get(processor, ())
        if group_role not in roles:
            self.put_held(processor, (*roles, group_role))

    def remove_held(self, processor: ProcessorId, group_role: GroupRole) -> None:
        """Remove a running role from a processor."""
        roles = self.held.get(processor, ())
        if group_role in roles:
            self.put_held(processor, tuple(role for role in roles if role != group_role))

    def put_held(self, processor: ProcessorId, roles: tuple[GroupRole, ...]) -> None:
        """Set the running roles of a processor."""
        if self.held.get(processor, ()) != roles:
            held = self.held.put(processor, roles) if roles else self.held.drop(processor)
            self.held, self._frozen = held, None

    def power_changed(self, processor: ProcessorId, *, up: bool, at_ms: int) -> None:
        """Apply that a processor came up or went down: it runs no roles now.

        The lock of the operator stays. Failures are cleared when the processor comes up.
        """
        locked = self.status(processor).locked
        self.put_status(processor, ProcessorStatus(since_ms=at_ms, locked=locked))
        self.put_held(processor, ())
        if up:
            self.clear_failures(processor)

    def clear_failures(self, processor: ProcessorId) -> None:
        """Clear the failures of all roles on a processor."""
        for instance in [each for each in self.failures if each.processor == processor]:
            self._erase("failures", instance)

    def add_failure(self, instance: RoleInstance, at_ms: int) -> None:
        """Count a failed start or stop of a role."""
        before = self.failures.get(instance)
        times = 1 if before is None else before.times + 1
        self._write("failures", instance, RoleFailures(times, at_ms))

    def clear_failure(self, instance: RoleInstance) -> None:
        """Clear the failures of a role on a processor."""
        if instance in self.failures:
            self._erase("failures", instance)

    def assign_slots(self, group: RoleGroupId, slots: Mapping[SlotId, ProcessorId]) -> None:
        """Set the processors of the slots of a group."""
        self._write("slots", group, FrozenMap(slots))

    def drop_group(self, group: RoleGroupId) -> None:
        """Remove a group. Its running roles stay until they are stopped."""
        if group in self.slots:
            self._erase("slots", group)
        for instance in [each for each in self.failures if each.group == group]:
            self._erase("failures", instance)

    def pin(self, group_role: GroupRole, slot: SlotId | None) -> None:
        """Pin a role to a slot, or remove its pin."""
        if slot is not None:
            self._write("pins", group_role, slot)
        elif group_role in self.pins:
            self._erase("pins", group_role)

    def drop_processor(self, processor: ProcessorId) -> None:
        """Remove the status of a processor that belongs to no group."""
        if processor in self.statuses:
            self.statuses, self._frozen = self.statuses.drop(processor), None

    def _write(self, name: str, key: Any, value: Any) -> None:
        dict.__setitem__(self._owned(name), key, value)

    def _erase(self, name: str, key: Any) -> None:
        dict.__delitem__(self._owned(name), key)

    def _owned(self, name: str) -> FrozenMap[Any, Any]:
        """Return a map that this draft may write, after copying it on its first write."""
        self._frozen = None
        if name not in self._own:
            setattr(self, name, FrozenMap(getattr(self, name)))
            self._own.add(name)
        owned: FrozenMap[Any, Any] = getattr(self, name)
        return owned
