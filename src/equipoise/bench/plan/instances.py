"""BtrPlace instances: found on disk, or two small built-in ones."""

from __future__ import annotations

import gzip
import json
import os
import zlib
from collections.abc import Iterator, Sequence
from pathlib import Path
from random import Random
from typing import Any, Final

FOLDER_VARIABLE: Final = "EQUIPOISE_BTRPLACE_DATA"
SUFFIX: Final = ".json.gz"
_DATA_FOLDER: Final = Path("shared") / "data" / "btrplace"

Record = dict[str, Any]


def search_folders() -> list[Path]:
    """The folders to search: the one that the variable names, or those beside the project."""
    named = os.environ.get(FOLDER_VARIABLE)
    if named:
        return [Path(named)]
    here = Path.cwd()
    return [folder / _DATA_FOLDER for folder in (here, *here.parents)]


def find_instances() -> list[Path]:
    """The instances of the first folder that has some."""
    for folder in search_folders():
        instances = sorted(folder.glob(f"*{SUFFIX}"))
        if instances:
            return instances
    return []


def write_builtin_instances(folder: Path) -> Iterator[Path]:
    """Write two fixed problems into a folder."""
    yield write_instance(growing(100, 1000), folder / f"growing-100-1000{SUFFIX}")
    yield write_instance(draining(100, 1000), folder / f"draining-100-1000{SUFFIX}")


def write_instance(instance: Record, path: Path) -> Path:
    """Write an instance."""
    path.write_bytes(gzip.compress(json.dumps(instance).encode(), mtime=0))
    return path


def has_network(path: Path) -> bool:
    """Return whether an instance has a network; an unreadable file has none."""
    try:
        views = json.loads(gzip.decompress(path.read_bytes()))["model"]["views"]
        return any(view["id"] == "net" for view in views)
    except (OSError, EOFError, zlib.error, ValueError, KeyError, TypeError):
        return False


CPU, MEMORY = "cpu", "mem"
CAPACITY_PER_VM: Final = {CPU: 16, MEMORY: 8}
"""The capacity of a host per initial VM; a VM takes at most three quarters of it."""


def growing(hosts: int, vms: int) -> Record:
    """The VMs of every tenth host outgrow it; some VMs must be apart, some in the same half."""
    rng = Random(3)
    uses = _random_usage(rng, vms)
    growers = [vm for vm in range(vms) if vm % hosts % 10 == 0]
    constraints: list[Record] = [
        {"id": "preserve", "vm": vm, "rc": CPU, "amount": CAPACITY_PER_VM[CPU] + 4}
        for vm in growers
    ]
    constraints += _spread_constraints(rng, hosts, vms)
    half = hosts // 2
    halves = [list(range(half)), list(range(half, hosts))]
    for _ in range(max(1, vms // 100)):
        some = rng.sample(range(vms), 2)
        constraints.append({"id": "among", "vms": some, "parts": halves, "continuous": False})
    return _instance(hosts, uses, constraints)


def draining(hosts: int, vms: int) -> Record:
    """Every tenth host must power off, and as many new VMs as one host has must run."""
    rng = Random(4)
    fresh = list(range(vms, vms + vms // hosts))
    constraints: list[Record] = [{"id": "running", "vm": vm} for vm in fresh]
    constraints += [
        {"id": "online" if host % 10 else "offline", "node": host} for host in range(hosts)
    ]
    constraints += _spread_constraints(rng, hosts, vms)
    return _instance(hosts, _random_usage(rng, vms + len(fresh)), constraints, ready=fresh)


def _random_usage(rng: Random, vms: int) -> dict[str, list[int]]:
    return {
        name: [rng.randint(room // 4, 3 * room // 4) for _ in range(vms)]
        for name, room in CAPACITY_PER_VM.items()
    }


def _spread_constraints(rng: Random, hosts: int, vms: int) -> list[Record]:
    """Groups of VMs that must be on different hosts; the first pair is on one host now."""
    some = [[0, hosts], *(rng.sample(range(vms), 3) for _ in range(max(1, vms // 50)))]
    return [{"id": "spread", "vms": group, "continuous": False} for group in some]


def _instance(
    hosts: int, uses: dict[str, list[int]], constraints: list[Record], ready: Sequence[int] = ()
) -> Record:
    """Return an instance with the VMs in turn on hosts that are all on."""
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
            "nodes": {str(host): CAPACITY_PER_VM[name] * per_host for host in range(hosts)},
        }
        for name, amounts in uses.items()
    ]  # fmt: skip
    attributes: Record = {"vms": {}, "nodes": {}}
    return {
        "model": {"mapping": mapping, "attributes": attributes, "views": views},
        "constraints": constraints,
        "objective": {"id": "minimizeMTTR"},
    }
