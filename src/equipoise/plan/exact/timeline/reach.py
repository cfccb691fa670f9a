"""How far the planner looks, and what it says when a wish is out of any reach."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any

from equipoise.model.quantity import HostId, VmId


@dataclass(frozen=True, slots=True)
class Reach:
    """How far the planner looks: who may move where, and how often."""

    moves: int
    movable: Collection[VmId] | None = None
    """The VMs that may migrate; all, if nobody is named."""
    hosts: Mapping[VmId, Collection[HostId]] | None = None
    """The hosts that single VMs may come to; all, for a VM that is not named."""
    in_parallel: bool = False
    """Whether everything must end as early as if nobody had to wait for anybody else."""
    with_room: bool = True
    """Whether there must be room. Only who wants to know what would be without asks for none."""

    def is_whole(self, moves_max: int) -> bool:
        """Whether nothing is left out."""
        everybody = self.movable is None and self.hosts is None
        return everybody and not self.in_parallel and self.moves >= moves_max

    def may_move(self, vm: VmId) -> bool:
        """Whether a VM may migrate."""
        return self.movable is None or vm in self.movable


class Unreachable(Exception):
    """A wish that no course leads to, with the claims that make it so and the reason."""

    def __init__(self, claims: tuple[Any, ...], why: str) -> None:
        super().__init__(why)
        self.claims = claims
        self.why = why
