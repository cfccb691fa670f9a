"""Problems as BtrPlace writes them: those kept beside the project, or small ones of ours."""

from __future__ import annotations

import gzip
import json
import os
import zlib
from collections.abc import Iterator, Sequence
from pathlib import Path
from random import Random
from typing import Any, Final

VARIABLE: Final = "EQUIPOISE_BTRPLACE_DATA"
ENDING: Final = ".json.gz"
_BESIDE: Final = Path("shared") / "data" / "btrplace"

Record = dict[str, Any]


def looked_for() -> list[Path]:
    """Where instances may be: in the folder that is named, or beside the project's folder."""
    named = os.environ.get(VARIABLE)
    if named:
        return [Path(named)]
    here = Path.cwd()
    return [folder / _BESIDE for folder in (here, *here.parents)]


def found() -> list[Path]:
    """The instances of the first folder that has some."""
    for folder in looked_for():
        instances = sorted(folder.glob(f"*{ENDING}"))
        if instances:
            return instances
    return []


def built_in(folder: Path) -> Iterator[Path]:
    """Two problems that are the same every time, written into a folder."""
    yield write(growing(100, 1000), folder / f"growing-100-1000{ENDING}")
    yield write(draining(100, 1000), folder / f"draining-100-1000{ENDING}")


def write(instance: Record, path: Path) -> Path:
    """Write an instance."""
    path.write_bytes(gzip.compress(json.dumps(instance).encode(), mtime=0))
    return path


def has_network(path: Path) -> bool:
    """Tell whether an instance limits what can be moved at once; one that is unreadable has not."""
    try:
        views = json.loads(gzip.decompress(path.read_bytes()))["model"]["views"]
        return any(view["id"] == "net" for view in views)
    except (OSError, EOFError, zlib.error, ValueError, KeyError, TypeError):
        return False


CPU, MEMORY = "cpu", "mem"
ROOM: Final = {CPU: 16, MEMORY: 8}
"""What a host has for each VM that it begins with; a VM takes at most three quarters of it."""


def growing(hosts: int, vms: int) -> Record:
    """VMs of every tenth host grow until it is too small; some are to be apart, or to be near."""
    chance = Random(3)
    uses = _uses(chance, vms)
    growers = [vm for vm in range(vms) if vm % hosts % 10 == 0]
    wishes: list[Record] = [
        {"id": "preserve", "vm": vm, "rc": CPU, "amount": ROOM[CPU] + 4} for vm in growers
    ]
    wishes += _apart(chance, hosts, vms)
    half = hosts // 2
    halves = [list(range(half)), list(range(half, hosts))]
    for _ in range(max(1, vms // 100)):
        some = chance.sample(range(vms), 2)
        wishes.append({"id": "among", "vms": some, "parts": halves, "continuous": False})
    return _instance(hosts, uses, wishes)


def draining(hosts: int, vms: int) -> Record:
    """Every tenth host is to be switched off, and as many more VMs as one holds are to run."""
    chance = Random(4)
    fresh = list(range(vms, vms + vms // hosts))
    wishes: list[Record] = [{"id": "running", "vm": vm} for vm in fresh]
    wishes += [{"id": "online" if host % 10 else "offline", "node": host} for host in range(hosts)]
    wishes += _apart(chance, hosts, vms)
    return _instance(hosts, _uses(chance, vms + len(fresh)), wishes, ready=fresh)


def _uses(chance: Random, vms: int) -> dict[str, list[int]]:
    return {
        name: [chance.randint(room // 4, 3 * room // 4) for _ in range(vms)]
        for name, room in ROOM.items()
    }


def _apart(chance: Random, hosts: int, vms: int) -> list[Record]:
    """Some VMs that are to be on different hosts; the first pair is on one now."""
    some = [[0, hosts], *(chance.sample(range(vms), 3) for _ in range(max(1, vms // 50)))]
    return [{"id": "spread", "vms": group, "continuous": False} for group in some]


def _instance(
    hosts: int, uses: dict[str, list[int]], wishes: list[Record], ready: Sequence[int] = ()
) -> Record:
    """VMs are dealt out in turn to hosts that are all on."""
    count = len(uses[CPU])
    per_host = (count - len(ready)) // hosts
    dealt = range(count - len(ready))
    mapping = {
        "onlineNodes": {
            str(host): {"runningVMs": [*dealt[host::hosts]], "sleepingVMs": []}
            for host in range(hosts)
        },
        "offlineNodes": [],
        "readyVMs": [*ready],
    }
    views = [
        {
            "id": "shareableResource", "rcId": name, "defConsumption": 0, "defCapacity": 0,
            "vms": {str(vm): amount for vm, amount in enumerate(amounts)},
            "nodes": {str(host): ROOM[name] * per_host for host in range(hosts)},
        }
        for name, amounts in uses.items()
    ]  # fmt: skip
    attributes: Record = {"vms": {}, "nodes": {}}
    return {
        "model": {"mapping": mapping, "attributes": attributes, "views": views},
        "constraints": wishes,
        "objective": {"id": "minimizeMTTR"},
    }
