"""The rows of the fluid state: one record per VM and per host."""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np

from equipoise.place.water import CLAIMS, TREE, Records

LIMBO: Final = 0
"""The row of no host: VMs that are meant to run and lie nowhere are there, and get nothing."""
CURVE: Final = 16
"""How many figures a host's power curve is kept with."""


def _floats(*names: str) -> list[tuple[str, str]]:
    return [(name, "f8") for name in names]


def _whole(*names: str) -> list[tuple[str, str]]:
    return [(name, "i8") for name in names]


VM: Final = np.dtype(
    [
        # The row of the host it runs on; LIMBO if it should run; NOBODY if it need not.
        *_whole("host", "pool"),
        *_floats("size"),
        # Its claims; the weight is its part of the shares of its pool, and so of the pool's part
        # of its parent's; the last two are its parts of what its pool reserves and may have.
        *_floats("cpu_floor", "cpu_ceiling", "cpu_shares", "cpu_weight"),
        *_floats("cpu_pool_floor", "cpu_pool_ceiling"),
        *_floats("memory_floor", "memory_ceiling", "memory_shares", "memory_weight"),
        *_floats("memory_pool_floor", "memory_pool_ceiling"),
        # How fast it may run: 1, less while it is copied, 0 while it is stopped for a switch.
        *_floats("pace"),
        # What it asks for and gets now, and the part of the time that it waits for a CPU.
        *_floats("cpu_want", "cpu_got", "ready", "memory_want", "memory_got"),
        # Sums are amounts times milliseconds.
        *_floats("cpu_want_sum", "cpu_got_sum", "memory_want_sum", "memory_got_sum"),
        *_floats("ready_sum", "seen_ms", "run_ms", "down_ms"),
    ]
)

HOST: Final = np.dtype(
    [
        # 1 if VMs can run on it; 1 while it waits to be divided anew, 2 if its memory does, too.
        *_whole("awake", "marked"),
        # Up to when the sums are known.
        *_whole("last_ms"),
        # Its nodes: the host itself, the pools on it, its VMs.
        *_whole("first", "end"),
        # What VMs can have; with what the host keeps for itself; what migrations take of it.
        *_floats("cpu", "cpu_all", "cpu_taken", "memory", "memory_taken"),
        # Watts from no use to full use; when it is not awake; now; what it would draw more if it
        # did not sleep; 1 if it sleeps.
        ("power_curve", "f8", (CURVE,)),
        *_floats("watts_asleep", "watts", "watts_saved", "asleep"),
        *_floats("cpu_want", "cpu_used", "memory_want", "memory_used", "ballooned", "swapped"),
        # Sums are amounts times milliseconds.
        *_floats("cpu_used_sum", "cpu_sum", "memory_sum", "energy", "energy_saved", "asleep_ms"),
    ]
)

POOL: Final = np.dtype(_whole("parent", "node", "stamp"))
"""The pool above; the node on the host that was planted last, and which host that is."""


class Nodes(NamedTuple):
    """The trees of all hosts, one after the other."""

    tree: Records
    cpu: Records
    memory: Records


class State(NamedTuple):
    """All that flows."""

    vms: Records
    hosts: Records
    nodes: Nodes
    balloon_most: float
    """How much of a VM's size the balloon can take."""
    swap_slowdown: float
    overhead_mib: float
    """What each running VM needs besides its memory."""


def empty_nodes(count: int) -> Nodes:
    """Room for so many nodes."""
    return Nodes(
        np.zeros(count, dtype=TREE), np.zeros(count, dtype=CLAIMS), np.zeros(count, dtype=CLAIMS)
    )


def grown(rows: Records, count: int) -> Records:
    """The same rows with room for more."""
    longer = np.zeros(count, dtype=rows.dtype)
    longer[: len(rows)] = rows
    return longer
