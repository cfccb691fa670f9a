"""Placement rules that the gate checks plans against.

A *hard* rule is never broken by a plan; a *soft* one is a preference. A *discrete* rule is judged
on the state in which a plan ends; a *continuous* one also at the start and at every moment in
between.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated

from msgspec import Meta

from equipoise.model.quantity import HostKey, RuleKey, VmKey
from equipoise.model.value import Value

Argument = int | str | tuple[str | tuple[str, ...], ...]
"""An argument of a constraint: a number, a text, an id, a list of ids, or a list of lists."""

_Several = Meta(min_length=2)
_Some = Meta(min_length=1)


class KeepApart(Value, tag="keep_apart", tag_field="kind"):
    """No two of these VMs run on one host."""

    id: RuleKey
    vms: Annotated[tuple[VmKey, ...], _Several]
    hard: bool = True
    continuous: bool = False


class KeepTogether(Value, tag="keep_together", tag_field="kind"):
    """The running ones of these VMs are on one host."""

    id: RuleKey
    vms: Annotated[tuple[VmKey, ...], _Several]
    hard: bool = True
    continuous: bool = False


class StayWithin(Value, tag="stay_within", tag_field="kind"):
    """These VMs run only on these hosts."""

    id: RuleKey
    vms: Annotated[tuple[VmKey, ...], _Some]
    hosts: Annotated[tuple[HostKey, ...], _Some]
    hard: bool = True
    continuous: bool = False


class StayOff(Value, tag="stay_off", tag_field="kind"):
    """These VMs never run on these hosts."""

    id: RuleKey
    vms: Annotated[tuple[VmKey, ...], _Some]
    hosts: Annotated[tuple[HostKey, ...], _Some]
    hard: bool = True
    continuous: bool = False


class Satisfy(Value, tag="satisfy", tag_field="kind"):
    """A constraint of the specification language holds, with these arguments."""

    id: RuleKey
    constraint: str
    """The name of a constraint of the library or of the inventory's specification."""
    arguments: Mapping[str, Argument] = {}
    hard: bool = True
    continuous: bool = False


PlacementRule = KeepApart | KeepTogether | StayWithin | StayOff
Rule = PlacementRule | Satisfy
