"""How fast and how good planning is, beside BtrPlace on the instances of its own benchmark.

Each side is a process of its own, and both take turns. A side's time is what it says itself:
reading, building and searching, without the start of its interpreter; that of the whole process is
among the figures. What plans cost is counted by one measure for both.

``EQUIPOISE_BTRPLACE_DATA`` names another folder of instances, ``EQUIPOISE_BENCH_RUNS`` says how
often each side is asked; the quickest answer counts.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from equipoise.cli.bench import imposed, instances
from equipoise.cli.bench.child import Ended, watch
from equipoise.cli.bench.row import Row
from equipoise.errors import InvalidInput, MissingExtra, Problem
from equipoise.fuzz.targets import java
from equipoise.fuzz.targets.amount import Amount, amount_of

RUNS: Final = "EQUIPOISE_BENCH_RUNS"
CHILD_S_MAX: Final = 600
SEARCH_S_MAX: Final = 300
HEAP_MIB: Final = 4096
WORDS_MAX: Final = 160
WHOLE: Final = ("li6", "nr6")
"""Solved without repair by us alone: BtrPlace runs out of memory."""
WHOLE_S_MAX: Final = 120
WHOLE_MIB_MAX: Final = 4096
PARTS: Final = ("load_s", "build_s", "solve_s")
US: Final = (sys.executable, "-c", "from equipoise.cli.main import main; main()")


@dataclass(frozen=True, slots=True)
class Try:
    """What came of asking one side once."""

    ended: Ended
    total_s: float
    times: Mapping[str, float] = field(default_factory=dict)
    amount: Amount | None = None
    """Nothing if it found no plan."""
    why: str = ""
    """Why it found none."""
    verified: bool = False


def rows() -> Iterator[Row]:
    """A plan imposed; each instance beside BtrPlace; then the largest ones without repair."""
    yield from imposed.rows()
    runs = _runs()
    with tempfile.TemporaryDirectory() as folder:
        work = Path(folder)
        some = instances.found()
        if not some:
            places = ", ".join(map(str, instances.looked_for()))
            note = f"looked for *{instances.ENDING} in {places}; {instances.VARIABLE} names another"
            yield Row(
                "no instances of BtrPlace's: two built-in ones instead", 0, "", None, note=note
            )
            some = list(instances.built_in(work))
        for instance in some:
            yield _beside(instance, work / "plan.json", runs)
        for instance in some:
            if _name(instance) in WHOLE:
                yield _whole(instance, work / "plan.json")


def _runs() -> int:
    text = os.environ.get(RUNS, "2")
    if not text.isdecimal() or int(text) == 0:
        raise InvalidInput(RUNS, [Problem(key="", what=f"{text!r} is no count", cure="write 2")])
    return int(text)


# Beside BtrPlace


def _beside(instance: Path, plan: Path, runs: int) -> Row:
    try:
        peer = _Peer(java.need())
    except MissingExtra as error:
        ours = _best([_ours(instance, plan, repair=True) for _ in range(runs)])
        return _row(instance, ours, None, "BtrPlace", [str(error)])
    mine, theirs = [], []
    for _ in range(runs):
        mine.append(_ours(instance, plan, repair=True))
        theirs.append(peer.ask(instance, plan))
    notes = [peer.note] if peer.note else []
    if instances.has_network(instance):
        notes.append("the instance has a network: compare what the plans cost before their times")
    return _row(instance, _best(mine), _best(theirs), peer.title, notes)


def _row(instance: Path, ours: Try, theirs: Try | None, title: str, notes: list[str]) -> Row:
    figures = {"verified": float(ours.verified)} | _figures("", ours)
    if theirs is not None:
        figures |= {"peer_total_s": theirs.total_s} | _figures("peer_", theirs)
        if theirs.ended.wall_s and ours.ended.wall_s:
            figures["ratio_of_processes"] = theirs.ended.wall_s / ours.ended.wall_s
    sides = (("ours", ours), ("BtrPlace", theirs))
    notes += [f"{who} found no plan: {one.why}" for who, one in sides if one and one.why]
    comparable = theirs is not None and theirs.amount is not None and ours.amount is not None
    return Row(
        f"plan {_name(instance)}, repair",
        ours.total_s,
        title,
        theirs.total_s if theirs is not None and comparable else None,
        figures=figures,
        note="; ".join(notes),
    )


def _figures(side: str, one: Try) -> dict[str, float]:
    found: dict[str, float] = {}
    if one.amount is not None:
        found = {"ends_s": one.amount.ends_s, "moves": one.amount.moves}
    found |= one.times
    found |= {"process_s": one.ended.wall_s, "peak_mib": one.ended.peak_mib}
    return {f"{side}{name}": value for name, value in found.items()}


def _best(tries: Sequence[Try]) -> Try:
    """The quickest of those that found a plan, if any did."""
    return min(tries, key=lambda one: (one.amount is None, one.total_s))


# Alone


def _whole(instance: Path, plan: Path) -> Row:
    ours = _ours(instance, plan, repair=False)
    notes = [f"ours found no plan: {ours.why}"] if ours.why else []
    if ours.ended.wall_s > WHOLE_S_MAX:
        notes.append(f"the process took longer than {WHOLE_S_MAX} s")
    if ours.ended.peak_mib > WHOLE_MIB_MAX:
        notes.append(f"it had more than {WHOLE_MIB_MAX:,} MiB")
    limits = f"at most {WHOLE_S_MAX} s and {WHOLE_MIB_MAX:,} MiB"
    return Row(
        f"plan {_name(instance)}, all may move, wanted: {limits}",
        ours.total_s,
        "",
        None,
        figures={"verified": float(ours.verified)} | _figures("", ours),
        note="; ".join(notes),
    )


# The two sides


def _ours(instance: Path, plan: Path, *, repair: bool) -> Try:
    options = ["--json", "-o", str(plan), "--btrplace", *(["--repair"] if repair else [])]
    return _asked([*US, "solve", str(instance), *options], plan, _sum)


class _Peer:
    """BtrPlace, which is asked to repair until that breaks it."""

    def __init__(self, build: java.Build) -> None:
        self._build = build
        self._repair = True
        self.note = ""

    @property
    def title(self) -> str:
        """Who is asked, and how."""
        return f"BtrPlace {self._build.version}{' -r' if self._repair else ''}"

    def ask(self, instance: Path, plan: Path) -> Try:
        """Ask once; without repair, if it has broken."""
        found = self._ask(instance, plan)
        if self._repair and found.ended.code not in (0, None):
            self.note = f"BtrPlace -r broke ({found.why}), so it was asked without -r"
            self._repair = False
            found = self._ask(instance, plan)
        return found

    def _ask(self, instance: Path, plan: Path) -> Try:
        line = self._build.line(
            instance, plan, repair=self._repair, search_s_max=SEARCH_S_MAX, heap_mib=HEAP_MIB
        )
        return _asked(line, plan, lambda said: float(said["total_s"]))


def _asked(line: list[str], plan: Path, total_s: Callable[[Mapping[str, Any]], float]) -> Try:
    plan.unlink(missing_ok=True)  # that of the one who was asked before
    ended = watch(line, seconds_max=CHILD_S_MAX)
    if ended.code is None:
        return Try(ended, CHILD_S_MAX, why=f"it took longer than {CHILD_S_MAX} s")
    try:
        said = json.loads(ended.said)
        total, times = total_s(said), {part: float(said[part]) for part in PARTS}
    except (ValueError, KeyError, TypeError):
        return Try(ended, ended.wall_s, why=_last_words(ended))
    status = said.get("status")
    if status == "error" or not plan.exists():
        return Try(ended, total, times, why=_shortened(str(said.get("error", status))))
    try:
        amount = amount_of(json.loads(plan.read_bytes()))
    except (ValueError, KeyError, TypeError, AttributeError):  # it broke while it wrote
        return Try(ended, total, times, why="its plan cannot be read")
    return Try(ended, total, times, amount, verified=bool(said.get("verified")))


def _sum(said: Mapping[str, Any]) -> float:
    return sum(float(said[part]) for part in PARTS)


def _last_words(ended: Ended) -> str:
    """What one that gave no proper answer said about it: in JSON, or at the very end."""
    try:
        said = json.loads(ended.said)
        return _shortened(str(said.get("message") or said["error"]))
    except (ValueError, KeyError, AttributeError):
        lines = (ended.complained or ended.said).strip().splitlines()
        return _shortened(lines[-1] if lines else f"it ended with code {ended.code}")


def _shortened(words: str) -> str:
    return words if len(words) <= WORDS_MAX else f"{words[:WORDS_MAX]}..."


def _name(instance: Path) -> str:
    return instance.name.removesuffix(instances.ENDING)
