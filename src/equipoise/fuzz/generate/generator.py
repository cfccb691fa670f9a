"""One trial after the other, each from the seed and its number alone."""

from __future__ import annotations

from random import Random
from typing import Final

from equipoise.errors import InvalidInput
from equipoise.errors import Problem as Mistake
from equipoise.fuzz.generate.arguments import Nobody, draw_arguments
from equipoise.fuzz.generate.cluster import draw_hosts, draw_vms
from equipoise.fuzz.generate.options import USUAL, Options
from equipoise.fuzz.generate.plan import draw_plan
from equipoise.fuzz.trial.trial import Trial
from equipoise.model.inventory import Inventory
from equipoise.model.snapshot import Snapshot
from equipoise.spec.demand import Demand
from equipoise.spec.specification import Specification

TRIES_MAX: Final = 1_000
"""How often a trial is drawn anew that is not as it was asked for."""


class Generator:
    """Trials for one constraint. The same seed and number give the same trial, wherever it is."""

    def __init__(
        self, home: Specification, name: str, options: Options = USUAL, seed: int = 0
    ) -> None:
        self._home = home
        self._name = name
        self._constraint = home.constraints[name]
        self._options = options
        self._seed = seed
        self._modes = [mode == "continuous" for mode in self._constraint.marks if mode in _MODES]
        if options.continuous is not None:
            if options.continuous not in self._modes:
                mode = "continuous" if options.continuous else "discrete"
                mistake = Mistake(key="continuous", what=f"{name} is never {mode}")
                raise InvalidInput("options", [mistake])
            self._modes = [options.continuous]

    def trial(self, number: int) -> Trial:
        """The trial of a number."""
        rng = Random(f"{self._seed} {self._name} {number}")
        for _ in range(TRIES_MAX):
            try:
                trial = self._draw(rng)
            except Nobody:
                continue
            wanted = self._options.broken_at_first
            if wanted is None or trial.is_broken_at_first == wanted:
                return trial
        what = f"none of {TRIES_MAX} trials of {self._name} is as it was asked for"
        cure = "more hosts or VMs, or leave broken_at_first out"
        raise InvalidInput("options", [Mistake(key="", what=what, cure=cure)])

    def _mode(self, rng: Random) -> bool:
        """Every moment, twice of three times if there is a choice: more can go wrong then."""
        return rng.choice([*self._modes, True in self._modes])

    def _draw(self, rng: Random) -> Trial:
        options = self._options
        hosts = draw_hosts(rng, options)
        vms = draw_vms(rng, options, hosts)
        snapshot = Snapshot.of(Inventory(hosts=tuple(hosts), vms=tuple(vms)))
        steps = draw_plan(rng, options, hosts, vms, snapshot.settings.limits)
        arguments = draw_arguments(rng, self._constraint, snapshot, steps, options)
        demand = Demand(self._home, self._name, arguments, self._mode(rng))
        return Trial(demand, snapshot, steps)


_MODES: Final = frozenset({"discrete", "continuous"})
