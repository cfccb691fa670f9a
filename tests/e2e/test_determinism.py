"""Same seed, same bytes: in two processes, with different hash seeds, on a cluster of some size."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

TESTS = Path(__file__).parent.parent

PROGRAM = """
import random
from equipoise.control import ControlLoop
from equipoise.model.action import Migrate
from equipoise.model.event import HostFailed, VmCrashed
from equipoise.model.host import Host
from equipoise.model.inventory import Inventory
from equipoise.model.plan import ConcurrencyLimits, Intent, Proposal, Purpose
from equipoise.model.state.snapshot import Snapshot
from equipoise.model.vm import CpuSettings, Vm
from memory_world import MemoryWorld, Script
from equipoise.store import MemoryJournal

chance = random.Random(7)
hosts = [f"h{n}" for n in range(40)]
inventory = Inventory(
    hosts=tuple(Host(id=h, cores=16, mhz_per_core=1000, memory_mib=65536) for h in hosts),
    vms=tuple(
        Vm(id=f"v{n}", vcpus=1, memory_mib=1024, host=chance.choice(hosts),
           labels={"b": "1", "a": "2"},
           cpu=CpuSettings(reservation_mhz=chance.randint(0, 900)))
        for n in range(400)
    ),
    limits=ConcurrencyLimits(actions_per_host=3),
)

class Restless:
    def propose(self, snapshot):
        running = [vm for vm in snapshot.vms.values() if vm.host]
        some = chance.sample(running, 60)
        intents = [
            Intent(id=str(n), action=Migrate(vm=vm.id, source=vm.host, target=target),
                   duration_ms=1000 + n)
            for n, vm in enumerate(some)
            if (target := chance.choice(hosts)) != vm.host and snapshot.hosts[target].state == "on"
        ]
        return Proposal(decider="restless", purpose=Purpose.BALANCE, intents=tuple(intents),
                        gain={"z": 1.5, "a": 0.1})

script = Script(
    events=tuple(HostFailed(at_ms=chance.randint(0, 10**6), host=h) for h in hosts[:6])
    + tuple(VmCrashed(at_ms=chance.randint(0, 10**6), vm=f"v{n}") for n in range(30)),
)
journal = MemoryJournal()
loop = ControlLoop(MemoryWorld(Snapshot.of(inventory), script), journal, deciders=[Restless()])
loop.run(until_ms=20 * 60 * 1000)
print(len(journal), journal.sha256())
"""


def test_the_journal_has_the_same_bytes_whatever_the_hash_seed() -> None:
    answers = [
        subprocess.run(
            [sys.executable, "-c", PROGRAM],
            env=os.environ | {"PYTHONHASHSEED": seed, "PYTHONPATH": str(TESTS)},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed in ("0", "1", "4242")
    ]
    assert int(answers[0].split()[0]) > 300, "much has happened"
    assert len(set(answers)) == 1
