"""The traces of energy and power states, with the columns and the rounding of Batsim 4.2."""

from __future__ import annotations

from collections.abc import Sequence
from math import fsum
from typing import TextIO

from equipoise.sim.jobs.host_set import format_host_set
from equipoise.sim.jobs.hosts import HostStates

SWITCHING_ON, SWITCHING_OFF = -1, -2
NO_CHANGE = -42
"""What Batsim writes if a scheduler names a state of transition."""


class PowerTraces:
    """Writes ``consumed_energy.csv`` and ``pstate_changes.csv``."""

    def __init__(self, prefix: str, hosts: HostStates) -> None:
        self._hosts = hosts
        self._last_s = 0.0
        self._last_j = [0.0] * len(hosts.energies_j(0.0))
        self._energy = _open(prefix, "consumed_energy", "time,energy,event_type,wattmin,epower")
        self._states = _open(prefix, "pstate_changes", "time,machine_id,new_pstate")
        for state in sorted(set(hosts.power_state)):
            numbers = [n for n, power_state in enumerate(hosts.power_state) if power_state == state]
            self.write_state(0.0, numbers, state)

    def write_energy(self, now_s: float, kind: str) -> None:
        """Write the energy so far: at the start (s) or end (e) of a job, or a switch (p)."""
        hosts_j = self._hosts.energies_j(now_s)
        passed_s = now_s - self._last_s
        # Between two events of one instant lies a rounding error of time. Batsim divides by it too,
        # with sums of more digits than a float has, so the difference must be exact.
        gained_j = fsum((*hosts_j, *(-joules for joules in self._last_j)))
        mean_w = f"{gained_j / passed_s:g}" if passed_s > 0 else "NA"
        base_w = self._hosts.base_watts()
        self._energy.write(f"{now_s:g},{fsum(hosts_j):g},{kind},{base_w:g},{mean_w}\n")
        self._last_s, self._last_j = now_s, hosts_j

    def write_state(self, now_s: float, hosts: Sequence[int], state: int) -> None:
        """Write that hosts are in a power state, or switch on (-1) or off (-2)."""
        self._states.write(f"{now_s:g},{format_host_set(hosts)},{state}\n")

    def write_switch(
        self, now_s: float, hosts: Sequence[int], state: int, *, begins: bool, sleeps: bool
    ) -> None:
        """Write that hosts begin to switch, or have reached their power state."""
        passing = SWITCHING_OFF if sleeps else SWITCHING_ON
        self.write_state(now_s, hosts, passing if begins else state)

    def flush(self) -> None:
        """Write all rows to the disk."""
        self._energy.flush()
        self._states.flush()

    def close(self) -> None:
        """Close the files."""
        self._energy.close()
        self._states.close()


def _open(prefix: str, name: str, columns: str) -> TextIO:
    file = open(f"{prefix}{name}.csv", "w", encoding="utf-8")  # noqa: SIM115
    file.write(columns + "\n")
    return file
