"""The network that migrations go through."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta

from equipoise.model.quantity import HostKey, NameKey
from equipoise.model.value import Value

Mbps = Annotated[int, Meta(ge=1, le=10**9)]


class Switch(Value):
    """What links meet in."""

    id: NameKey
    capacity_mbps: Mbps | None = None
    """What goes through it at the most; without one it never is the bottleneck."""


class Link(Value):
    """A cable from a switch to a host or to another switch; both directions have its capacity."""

    id: NameKey
    switch: NameKey
    host: HostKey | None = None
    to: NameKey | None = None
    """The other switch, if it does not lead to a host."""
    capacity_mbps: Mbps


class Network(Value):
    """Switches and links. Migrations share what a link can carry."""

    switches: tuple[Switch, ...] = ()
    links: tuple[Link, ...] = ()
