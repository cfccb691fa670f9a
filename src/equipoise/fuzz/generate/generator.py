"""The generator: random trials for constraints, each from the seed and its number alone.

Drawn trials stay arrays, in which the specification judges many at once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from hashlib import blake2b
from itertools import repeat
from typing import Final

import numpy as np

from equipoise.adapters.targets.trial import DEFAULT_OPTIONS, PlanSampling, Trial, TrialOptions
from equipoise.errors import InputProblem, InvalidInput
from equipoise.fuzz.generate.case_arrays import DrawnCases, values_of
from equipoise.fuzz.generate.decode import TrialDecoder, TrialSource
from equipoise.fuzz.generate.draw import PlannedClusters, draw_planned_clusters, draw_trials, mix
from equipoise.fuzz.generate.draw.trial_arrays import ONE_HOST, ONE_VM, TrialArrays
from equipoise.fuzz.generate.parameters import drawable_parameters
from equipoise.model.inventory import Inventory
from equipoise.model.state.snapshot import Snapshot
from equipoise.spec.batch.cases import Array, LazySequence, Unbatchable
from equipoise.spec.batch.judge import Arguments, CaseBatch
from equipoise.spec.batch.values import BatchValue
from equipoise.spec.requirement import Case
from equipoise.spec.specification import Specification

BATCH_MIN: Final = 16
"""Below this number, single judgements are faster."""
_VERDICTS: Final = frozenset({"keeps", "broken_at_first"})


@dataclass(frozen=True)
class DrawnTrials:
    """Trials of one constraint that were drawn together."""

    source: TrialSource
    out: TrialArrays

    def __len__(self) -> int:
        return len(self.out.counts)

    def trial(self, i: int) -> Trial:
        """The trial with an index."""
        return TrialDecoder(self.source, self.out, i).trial()

    @cached_property
    def trials(self) -> Sequence[Trial]:
        """All trials."""
        return [self.trial(i) for i in range(len(self))]

    def but(self, which: Array, others: DrawnTrials) -> DrawnTrials:
        """A copy with other trials at some indexes; verdicts that both know are kept."""
        changed = DrawnTrials(
            self.source, TrialArrays(*map(_put, self.out, repeat(which), others.out))
        )
        for name in _VERDICTS & vars(self).keys() & vars(others).keys():
            vars(changed)[name] = _put(vars(self)[name], which, vars(others)[name])
        return changed

    def only(self, which: Array) -> DrawnTrials:
        """The trials with some indexes."""
        selected = DrawnTrials(self.source, TrialArrays(*(array[which] for array in self.out)))
        for name in _VERDICTS & vars(self).keys():
            vars(selected)[name] = vars(self)[name][which]
        return selected

    @cached_property
    def keeps(self) -> Array:
        """Whether each plan satisfies the constraint."""
        return self._verdicts(DrawnTrials._keeps, lambda trial: trial.violation is None)

    @cached_property
    def broken_at_first(self) -> Array:
        """Whether the constraint is violated before the plan starts."""
        return self._verdicts(DrawnTrials._broken_at_first, lambda trial: trial.is_broken_at_first)

    def _verdicts(
        self, together: Callable[[DrawnTrials], Array], alone: Callable[[Trial], bool]
    ) -> Array:
        """The verdicts on all trials: judged as arrays where possible, else one by one."""
        verdicts = np.zeros(len(self), np.bool_)
        if len(self) < BATCH_MIN:
            verdicts[:] = list(map(alone, self.trials))
            return verdicts
        for rows, group in self._groups:
            try:
                verdicts[rows] = together(group)
            except Unbatchable:
                verdicts[rows] = [alone(self.trials[i]) for i in rows.tolist()]
        return verdicts

    @cached_property
    def _groups(self) -> Sequence[tuple[Array, DrawnTrials]]:
        """Trials that are judged together: in the same mode, with the same names in formulas."""
        parameters = self.source.parameters
        named = [i for i, parameter in enumerate(parameters) if parameter.is_name]
        keys = np.column_stack([self.out.continuous, self.out.arguments[:, named, 0]])
        _, groups = np.unique(keys, axis=0, return_inverse=True)
        indexes = [np.flatnonzero(groups == group) for group in range(int(groups.max()) + 1)]
        return [(rows, self.only(rows)) for rows in indexes]

    def _keeps(self) -> Array:
        return self._holds(self._cases, continuous=bool(self.out.continuous[0]))

    def _broken_at_first(self) -> Array:
        return ~self._holds(self._cases.without_steps(), continuous=False)

    @cached_property
    def _cases(self) -> DrawnCases:
        return DrawnCases.of_drawn(self.source, self.out, LazySequence(len(self), self._case))

    @cached_property
    def _values(self) -> dict[str, BatchValue]:
        return values_of(self.source, self.out, self._cases)

    def _holds(self, cases: DrawnCases, *, continuous: bool) -> Array:
        source = self.source
        arguments = LazySequence[Arguments](
            len(self), lambda i: TrialDecoder(source, self.out, i).arguments()
        )
        judge = partial(CaseBatch(cases).judge, source.specification, source.name, arguments)
        return judge(continuous=continuous, values=self._values).holds

    def _case(self, i: int) -> Case:
        trial = self.trial(i)
        return Case(trial.initial, trial.steps)


def _put(array: Array, which: Array, part: Array) -> Array:
    """A copy of an array with other values at some indexes."""
    copy = array.copy()
    copy[which] = part
    return copy


TRIES_MAX: Final = 3_000
"""The maximum number of draws of a trial until it meets the options."""
REDRAWN_MAX: Final = 1_000
"""The maximum number of trials that are drawn again at the same time."""
_ATTEMPT: Final = np.uint64(1 << 48)
"""The distance of attempts: so large that no attempt has the key of another trial."""
_MODES: Final = frozenset({"discrete", "continuous"})
_CLUSTER_SETTINGS: Final = Snapshot.of(Inventory(hosts=())).settings


class ImpossibleTrials(InvalidInput):
    """No trial of a constraint meets the options; trials of other constraints may."""


class Generator:
    """Random trials of one constraint. The same seed and number give the same trial anywhere."""

    def __init__(
        self,
        specification: Specification,
        name: str,
        options: TrialOptions = DEFAULT_OPTIONS,
        seed: int = 0,
    ) -> None:
        constraint = specification.constraints[name]
        self._source = TrialSource(
            specification,
            name,
            options,
            drawable_parameters(constraint, options),
            _CLUSTER_SETTINGS,
        )
        self._options = options
        self._seed = seed
        self._modes = [mode == "continuous" for mode in constraint.marks if mode in _MODES]
        # Continuous in three of four trials if there is a choice: it has more possible violations.
        self._modes += [True in self._modes] * 2
        if options.continuous is not None:
            if options.continuous not in self._modes:
                mode = "continuous" if options.continuous else "discrete"
                raise _refused("continuous", f"{name} is never {mode}")
            self._modes = [options.continuous]
        self.least = tuple(map(self._least, (ONE_HOST, ONE_VM), ("hosts", "vms")))
        """The minimum number of hosts and VMs, so that single members of arguments exist."""

    def trial(self, number: int) -> Trial:
        """The trial with a number."""
        return self.block([number]).trial(0)

    def block(self, numbers: Sequence[int]) -> DrawnTrials:
        """The trials with some numbers."""
        ((_, drawn),) = draw_in_turn([self], self._options, self._seed, numbers)
        return drawn

    def draw_on(self, clusters: PlannedClusters) -> DrawnTrials:
        """The trials on given clusters, whether they meet the options or not."""
        source = self._source
        return DrawnTrials(
            source, draw_trials(clusters, self._options, source.parameters, self._modes)
        )

    def _least(self, what: int, kind: str) -> int:
        if all(parameter.what != what for parameter in self._source.parameters):
            return 0
        if getattr(self._options, kind)[1] == 0:
            raise _refused(kind, f"{self._source.name} needs a member of {kind}", "allow 1 or more")
        return 1

    def wanted(self, drawn: DrawnTrials) -> Array:
        """Which trials meet the options."""
        wanted = np.ones(len(drawn), np.bool_)
        if self._options.broken_at_first is not None:
            wanted &= drawn.broken_at_first == self._options.broken_at_first
        if self._options.plans is PlanSampling.REJECTED:
            wanted &= np.array([not trial.objections for trial in drawn.trials])
        return wanted

    def refusal(self) -> ImpossibleTrials:
        """The error if no trial meets the options."""
        what = f"none of {TRIES_MAX:,} trials of {self._source.name} meets the options"
        return _refused("", what, "allow more hosts or VMs, relax options or drop the constraint")


class _PendingTrials:
    """The trials of one generator; some are drawn again until all meet the options."""

    def __init__(self, generator: Generator, numbers: Array, clusters: PlannedClusters) -> None:
        self.generator, self.numbers = generator, numbers
        self.drawn = generator.draw_on(clusters)
        self.remaining = np.flatnonzero(~generator.wanted(self.drawn))
        self._attempt, self._tries = 1, 1

    def again(self) -> tuple[Array, Array]:
        """The numbers to draw again, with the attempt of each."""
        if self._attempt >= TRIES_MAX:
            raise self.generator.refusal()
        # Few remaining trials after many attempts are hard to find, so they get several attempts at
        # once. That does not change the result: the first attempt that is wanted counts.
        tries_max = max(1, REDRAWN_MAX // len(self.remaining))
        self._tries = min(tries_max, 4 * self._attempt, TRIES_MAX - self._attempt)
        attempts = np.arange(self._attempt, self._attempt + self._tries)
        return np.tile(self.numbers[self.remaining], self._tries), np.repeat(
            attempts, len(self.remaining)
        )

    def take(self, clusters: PlannedClusters) -> None:
        """Keep the trials of the new draw that meet the options."""
        remaining, again = self.remaining, self.generator.draw_on(clusters)
        wanted = self.generator.wanted(again).reshape(self._tries, len(remaining))
        found, first = wanted.any(axis=0), wanted.argmax(axis=0)
        chosen = (first * len(remaining) + np.arange(len(remaining)))[found]
        self.drawn = self.drawn.but(remaining[found], again.only(chosen))
        self.remaining, self._attempt = remaining[~found], self._attempt + self._tries


def planned_clusters(
    options: TrialOptions,
    seed: int,
    numbers: Array,
    least: Array,
    attempts: int | Array = 0,
) -> PlannedClusters:
    """The clusters and plans of trials with some numbers."""
    # A hash takes a seed of any size and sign, and close seeds give unrelated trials.
    base = int.from_bytes(blake2b(str(seed).encode(), digest_size=8).digest())
    with np.errstate(over="ignore"):
        keys = numbers.astype(np.uint64) + np.array(attempts, np.uint64) * _ATTEMPT
        # Mixed before the seed is added: otherwise seed and number could compensate each other.
        keys = mix(mix(keys) + np.uint64(base))
    return draw_planned_clusters(keys, options, least, _CLUSTER_SETTINGS.limits)


def draw_in_turn(
    generators: Sequence[Generator], options: TrialOptions, seed: int, numbers: Sequence[int]
) -> Iterator[tuple[Sequence[int], DrawnTrials]]:
    """The trials with some numbers, grouped by generator.

    The trial with number n belongs to generator n modulo their number.
    """
    all_numbers = np.array(numbers, np.int64)
    turns = all_numbers % len(generators)
    least = np.array([generator.least for generator in generators]).reshape(-1, 2)
    clusters = planned_clusters(options, seed, all_numbers, least[turns])
    groups = []
    for turn in range(min(len(generators), len(numbers))):
        which = np.flatnonzero(turns == turns[turn])
        groups.append(
            _PendingTrials(generators[turns[turn]], all_numbers[which], clusters.only(which))
        )
    while unfinished := [group for group in groups if group.remaining.size]:
        # In one draw for all generators: a few clusters take about as long as many.
        requests = [group.again() for group in unfinished]
        redrawn, attempts = (np.concatenate(arrays) for arrays in zip(*requests, strict=True))
        least_of_each = least[redrawn % len(generators)]
        clusters = planned_clusters(options, seed, redrawn, least_of_each, attempts)
        ends = np.cumsum([0, *(len(again) for again, _ in requests)])
        for group, first, end in zip(unfinished, ends, ends[1:], strict=False):
            group.take(clusters.only(np.arange(first, end)))
    for group in groups:
        yield group.numbers.tolist(), group.drawn


def _refused(key: str, what: str, cure: str = "") -> ImpossibleTrials:
    return ImpossibleTrials(
        "options", [InputProblem(key=key, what=what, cure=cure, code="impossible-trials")]
    )
