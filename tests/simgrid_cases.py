"""Random platforms with tasks that overlap, to compare our fluid model with SimGrid."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any, Final

from equipoise.adapters.simgrid.client import SimGridWorker

_POLICIES: Final = ("SHARED", "SHARED", "FATPIPE", "SPLITDUPLEX")
_HEAD: Final = (
    "<?xml version='1.0'?>\n"
    '<!DOCTYPE platform SYSTEM "https://simgrid.org/simgrid.dtd">\n'
    '<platform version="4.1">\n'
)


@dataclass(frozen=True, slots=True)
class RandomCase:
    """A platform file and tasks, as the worker reads them."""

    platform: str
    tasks: list[dict[str, Any]]


@dataclass(slots=True)
class _Zone:
    """A zone under construction: its text, its hosts, and the point where routes enter it."""

    name: str
    text: str
    hosts: list[str]
    gate: str


@dataclass(slots=True)
class CaseMaker:
    """Makes cases; equal seeds give equal cases."""

    seed: int
    _random: Random = field(init=False)
    _count: int = field(init=False, default=0)

    def __post_init__(self) -> None:
        self._random = Random(self.seed)

    def make(self) -> RandomCase:
        """Return the case of the seed."""
        zone = self._outer_zone() if self._chance(0.6) else self._inner_zone()
        return RandomCase(f"{_HEAD}{zone.text}</platform>\n", self._tasks(zone.hosts))

    def _chance(self, probability: float) -> bool:
        return self._random.random() < probability

    def _name(self, kind: str) -> str:
        self._count += 1
        return f"{kind}{self._count}"

    def _latency(self) -> str:
        return self._random.choice(["0s", "0s", "50us", "1ms", "0.02s", "1ns"])

    def _bandwidth(self) -> str:
        return f"{self._random.choice([10, 50, 100, 125, 200, 333])}MBps"

    def _host_values(self) -> str:
        speed = self._random.choice([50, 70, 100, 100, 150, 200])
        cores = self._random.choice([1, 1, 1, 2, 4])
        return f'speed="{speed}Mf" core="{cores}"'

    def _inner_zone(self) -> _Zone:
        if self._chance(0.4):
            return self._cluster()
        return self._flat_zone(
            "Full" if self._chance(0.5) else self._random.choice(["Floyd", "Dijkstra"])
        )

    def _cluster(self) -> _Zone:
        rng, name = self._random, self._name("c")
        count = rng.randint(2, 5)
        prefix, suffix = f"{name}-", rng.choice(["", ".net"])
        values = [
            f'id="{name}" prefix="{prefix}" suffix="{suffix}" radical="0-{count - 1}"',
            self._host_values(),
            f'bw="{self._bandwidth()}" lat="{self._latency()}"',
            f'sharing_policy="{rng.choice(_POLICIES)}"',
        ]
        if self._chance(0.6):
            values.append(f'bb_bw="{self._bandwidth()}" bb_lat="{self._latency()}"')
            values.append(f'bb_sharing_policy="{rng.choice(["SHARED", "FATPIPE"])}"')
        if self._chance(0.4):
            values.append(f'loopback_bw="{self._bandwidth()}" loopback_lat="{self._latency()}"')
        router = f"{name}-gate"
        text = f'<cluster {" ".join(values)} router_id="{router}"/>\n'
        return _Zone(name, text, [f"{prefix}{n}{suffix}" for n in range(count)], router)

    def _link(self) -> tuple[str, str]:
        """Return the text of a link and of its use in a route."""
        name, policy = self._name("l"), self._random.choice(_POLICIES)
        text = (
            f'<link id="{name}" bandwidth="{self._bandwidth()}" latency="{self._latency()}" '
            f'sharing_policy="{policy}"/>\n'
        )
        if policy == "SPLITDUPLEX":
            return (
                text,
                f'<link_ctn id="{name}" direction="{self._random.choice(["UP", "DOWN"])}"/>',
            )
        return text, f'<link_ctn id="{name}"/>'

    def _flat_zone(self, routing: str) -> _Zone:
        rng, name = self._random, self._name("z")
        hosts = [self._name("h") for _ in range(rng.randint(2, 5))]
        gate = self._name("r")
        links = [self._link() for _ in range(rng.randint(1, 4))]
        points = [*hosts, gate]
        pairs = [(a, b) for i, a in enumerate(points) for b in points[i + 1 :]]
        if routing != "Full":
            # A tree, so that there is one path between two points.
            pairs = [(points[rng.randrange(i)], points[i]) for i in range(1, len(points))]
        routes = []
        for source, target in pairs:
            used = rng.sample(links, rng.randint(1, min(3, len(links))))
            routes.append(_route("route", f'src="{source}" dst="{target}"', used))
        if routing == "Full":
            loops = [host for host in hosts if self._chance(0.4)]
            routes += [
                _route("route", f'src="{host}" dst="{host}"', [rng.choice(links)], one_way=True)
                for host in loops
            ]
        body = "".join(f'<host id="{host}" {self._host_values()}/>\n' for host in hosts)
        body += f'<router id="{gate}"/>\n' + "".join(text for text, _ in links) + "".join(routes)
        return _Zone(name, f'<zone id="{name}" routing="{routing}">\n{body}</zone>\n', hosts, gate)

    def _outer_zone(self, depth: int = 0) -> _Zone:
        rng, name = self._random, self._name("z")
        inner = [
            self._outer_zone(depth + 1) if depth == 0 and self._chance(0.25) else self._inner_zone()
            for _ in range(rng.randint(2, 3))
        ]
        links = [self._link() for _ in range(rng.randint(1, 3))]
        routes = []
        for index, first in enumerate(inner):
            for second in inner[index + 1 :]:
                ends = (
                    f'src="{first.name}" dst="{second.name}" '
                    f'gw_src="{first.gate}" gw_dst="{second.gate}"'
                )
                used = rng.sample(links, rng.randint(1, len(links)))
                routes.append(_route("zoneRoute", ends, used))
        body = "".join(zone.text for zone in inner)
        body += "".join(text for text, _ in links) + "".join(routes)
        text = f'<zone id="{name}" routing="Full">\n{body}</zone>\n'
        hosts = [host for zone in inner for host in zone.hosts]
        return _Zone(name, text, hosts, inner[0].gate)

    def _tasks(self, hosts: list[str]) -> list[dict[str, Any]]:
        return [self._task(hosts) for _ in range(self._random.randint(1, 8))]

    def _task(self, hosts: list[str]) -> dict[str, Any]:
        rng = self._random
        used = rng.sample(hosts, rng.randint(1, min(4, len(hosts))))
        if self._chance(0.1):
            used.append(rng.choice(used))
        count = len(used)
        computes, sends = self._chance(0.85), self._chance(0.7)
        flops = [
            rng.choice([0.0, 1e7, 5e7, rng.uniform(1e6, 1e9)]) if computes else 0.0 for _ in used
        ]
        sent = [
            rng.choice([1e5, 1e7, rng.uniform(1.0, 1e8)]) if self._chance(0.4) else 0.0
            for _ in range(count * count)
        ]
        return {
            "start": rng.choice([0.0, 0.0, 1.0, rng.uniform(0, 5)]),
            "hosts": used,
            "flops": flops,
            "bytes": sent if sends else [],
        }


def _route(tag: str, ends: str, links: list[tuple[str, str]], *, one_way: bool = False) -> str:
    symmetrical = ' symmetrical="NO"' if one_way else ""
    return f"<{tag} {ends}{symmetrical}>{''.join(use for _, use in links)}</{tag}>\n"


def completion_times_s(
    worker: SimGridWorker, platform: Path, tasks: Sequence[Mapping[str, Any]]
) -> list[float | None] | None:
    """Return the end of each task of a case; None if SimGrid gives no answer."""
    question = {"do": "run", "platform": str(platform), "tasks": list(tasks)}
    ends: list[float | None] | None = worker.exchange(question)["ends"]
    return ends
