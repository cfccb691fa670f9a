"""Writing plans to files: ours in YAML or JSON, BtrPlace's in its JSON."""

from __future__ import annotations

from math import lcm
from pathlib import Path

from equipoise.cli.write import write_file
from equipoise.errors import InvalidInput
from equipoise.errors import Problem as Mistake
from equipoise.model.files import btrplace, to_json, to_yaml
from equipoise.model.host import Host, HostState, HostWish
from equipoise.model.plan import Plan
from equipoise.model.problem import HostAim, Problem
from equipoise.model.quantity import PlanId


def write_plan(
    plan: Plan, problem: Problem, path: Path, *, as_btrplace: bool = False, line: bool = False
) -> None:
    """Write a plan, packed if the name ends in .gz; as one more ``line`` of a file, if asked to."""
    if as_btrplace:
        content = btrplace.write_plan(plan, problem)
    elif line or _is_json(path):
        content = to_json(plan, indent=0 if line else 2).encode()
    else:
        content = to_yaml(plan).encode()
    if path.suffix == ".gz":
        import gzip

        content = gzip.compress(content, mtime=0)
    write_file(path, content, append=line)


def for_btrplace(problem: Problem, source: str) -> Problem:
    """The same problem in whole seconds, so that BtrPlace has words for its plans.

    What it has none for is refused here, before a long search rather than after it.
    """
    cluster = problem.cluster
    mistakes = [
        Mistake(
            key=f"hosts.{host.id}",
            what="BtrPlace has no words for maintenance",
            cure="leave it out, or write no plan of BtrPlace's",
        )
        for host in cluster.hosts
        if _is_maintained(host, problem)
    ]
    if mistakes:
        raise InvalidInput(source, mistakes)
    # Only who may be refused: to write all the others takes a while.
    off = {host.id for host in cluster.hosts if host.state is not HostState.ON}
    there = cluster.but(vms=tuple(vm for vm in cluster.vms if vm.host in off))
    btrplace.write_plan(Plan(id=PlanId("none"), steps=()), problem.but(cluster=there))
    return problem.but(grid_ms=lcm(problem.grid_ms, 1000))


def _is_maintained(host: Host, problem: Problem) -> bool:
    """Whether a host is to be taken into maintenance, or back from it."""
    wished = HostAim.MAINTENANCE if host.requested is HostWish.MAINTENANCE else None
    aim = problem.hosts.get(host.id, wished)
    is_in = host.state is HostState.MAINTENANCE
    return aim is (HostAim.ONLINE if is_in else HostAim.MAINTENANCE)


def _is_json(path: Path) -> bool:
    return path.suffix == ".json" or path.suffixes[-2:] == [".json", ".gz"]
