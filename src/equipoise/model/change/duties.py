"""The duties of a draft: the same facts, writable, each map copied when it is first written."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from equipoise.model.quantity import ProcessorId, SlotId, TeamId
from equipoise.model.roles.duty import FRESH, Duties, Duty, Failure, Mark, Post
from equipoise.model.value import FrozenMap


class DutyDraft:
    """A working copy of ``Duties``."""

    def __init__(self, base: Duties) -> None:
        self.epoch = base.epoch
        self.held = base.held
        self.slots = base.slots
        self.marks = base.marks
        self.failures = base.failures
        self.pins = base.pins
        self._own: set[str] = set()
        self._frozen: Duties | None = base

    def freeze(self) -> Duties:
        """Give the facts; the draft may go on, and will copy again before it writes."""
        if self._frozen is None:
            self._frozen = Duties(
                self.epoch, self.held, self.slots, self.marks, self.failures, self.pins
            )
            self._own.clear()
        return self._frozen

    def reign(self, epoch: int) -> None:
        """Note who reigns, if nobody higher does."""
        if epoch > self.epoch:
            self.epoch, self._frozen = epoch, None

    def mark(self, processor: ProcessorId) -> Mark:
        """What is remembered of a processor."""
        mark: Mark = self.marks.get(processor, FRESH)
        return mark

    def put_mark(self, processor: ProcessorId, mark: Mark) -> None:
        """Remember something of a processor."""
        if self.marks.get(processor) != mark:
            self.marks, self._frozen = self.marks.put(processor, mark), None

    def hold(self, processor: ProcessorId, duty: Duty) -> None:
        """A processor runs a role."""
        now = self.held.get(processor, ())
        if duty not in now:
            self.put_held(processor, (*now, duty))

    def release(self, processor: ProcessorId, duty: Duty) -> None:
        """A processor does not run a role any more."""
        now = self.held.get(processor, ())
        if duty in now:
            self.put_held(processor, tuple(one for one in now if one != duty))

    def put_held(self, processor: ProcessorId, duties: tuple[Duty, ...]) -> None:
        """A processor runs these roles and no others."""
        if self.held.get(processor, ()) != duties:
            after = self.held.put(processor, duties) if duties else self.held.drop(processor)
            self.held, self._frozen = after, None

    def switched(self, processor: ProcessorId, *, up: bool, at_ms: int) -> None:
        """A processor has come up or gone down: what it ran is gone, what failed is forgotten."""
        locked = self.mark(processor).locked
        self.put_mark(processor, Mark(since_ms=at_ms, locked=locked))
        self.put_held(processor, ())
        if up:
            self.forgive(processor)

    def forgive(self, processor: ProcessorId) -> None:
        """Forget what failed on a processor."""
        for post in [one for one in self.failures if one.processor == processor]:
            self._erase("failures", post)

    def fail(self, post: Post, at_ms: int) -> None:
        """A role failed to start or stop."""
        before = self.failures.get(post)
        times = 1 if before is None else before.times + 1
        self._write("failures", post, Failure(times, at_ms))

    def succeed(self, post: Post) -> None:
        """A role started or stopped as it should."""
        if post in self.failures:
            self._erase("failures", post)

    def fill(self, group: TeamId, slots: Mapping[SlotId, ProcessorId]) -> None:
        """Say who has which slot of a group."""
        self._write("slots", group, FrozenMap(slots))

    def drop_group(self, group: TeamId) -> None:
        """A group is no more; what its processors run is still to be stopped."""
        if group in self.slots:
            self._erase("slots", group)
        for post in [one for one in self.failures if one.group == group]:
            self._erase("failures", post)

    def pin(self, duty: Duty, slot: SlotId | None) -> None:
        """Somebody wants a role to be in a slot, or where the controller likes."""
        if slot is not None:
            self._write("pins", duty, slot)
        elif duty in self.pins:
            self._erase("pins", duty)

    def forget(self, processor: ProcessorId) -> None:
        """A processor is not part of any group, and runs nothing."""
        if processor in self.marks:
            self.marks, self._frozen = self.marks.drop(processor), None

    def _write(self, name: str, key: Any, value: Any) -> None:
        dict.__setitem__(self._owned(name), key, value)

    def _erase(self, name: str, key: Any) -> None:
        dict.__delitem__(self._owned(name), key)

    def _owned(self, name: str) -> FrozenMap[Any, Any]:
        self._frozen = None
        if name not in self._own:
            setattr(self, name, FrozenMap(getattr(self, name)))
            self._own.add(name)
        mine: FrozenMap[Any, Any] = getattr(self, name)
        return mine
