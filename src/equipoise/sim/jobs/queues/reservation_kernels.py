"""The reservations of a long queue as arrays: kernels that find, take and move them.

The free hosts over time are steps, as in ``AvailabilityProfile``. A job looks only at starts that
became possible since its last try: those whose time contains a step in which hosts became free, and
which no smaller job has just tried in vain.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, NamedTuple

import numpy as np

Array = Any
STEPS: Final = 0
SPARE: Final = 1
"""Places in ``Steps.meta``."""
COUNT: Final = 0
ROW: Final = 1
BEFORE: Final = 2
NOW: Final = 3
"""Rows of ``Steps.facts``."""
MOVES: Final = 0
LIMITS: Final = 1
CHOOSES: Final = 2
"""Places in ``Notes.counts``; the last one is 1 if there is a first choice."""
LIMITS_TRIED: Final = 256
STEPS_OF_CHANGE: Final = 8
"""A job that moves adds fewer steps."""


class Steps(NamedTuple):
    """The free hosts over time; step i lasts from ``times[i]`` to the next step."""

    times: Array
    facts: Array
    """Per step: how many hosts are free; their row in ``free``; the arrival before which the jobs
    have not tried hosts that became free before this pass; the same for this pass, whose later
    jobs try them in turn. An arrival of 0 means that no host became free.
    """
    free: Array
    """A bit per host. Rows change their step, so that a new step moves no hosts."""
    spare: Array
    """The rows without a step."""
    meta: Array
    """The number of steps, and of rows without a step."""


class Queue(NamedTuple):
    """The waiting jobs by arrival, and their reservations."""

    arrivals: Array
    starts: Array
    lengths: Array
    widths: Array
    hosts: Array
    gone: Array
    """1 for a job that has started."""


class Notes(NamedTuple):
    """What a pass notes."""

    common: Array
    """The hosts that are free in all steps that a search has seen."""
    limits: Array
    limit_marks: Array
    """See ``find_limits``."""
    left: Array
    """The periods that moved jobs have left in this pass."""
    left_marks: Array
    """The arrivals of these jobs."""
    counts: Array
    """The number of these periods, of limits, and whether there is a first choice."""
    first_choice: Array
    """The hosts to take first at a start at once."""


class Wanted(NamedTuple):
    """What a job looks for."""

    arrival: int
    own_s: float
    """The start of its reservation, which counts as free."""
    width: int
    seconds: float
    own: Array
    own_first: int
    own_end: int


def count_bits(word: Any) -> int:
    """Return how many bits of a word are set."""
    word = word - ((word >> np.uint64(1)) & np.uint64(0x5555555555555555))
    low = word & np.uint64(0x3333333333333333)
    word = low + ((word >> np.uint64(2)) & np.uint64(0x3333333333333333))
    word = (word + (word >> np.uint64(4))) & np.uint64(0x0F0F0F0F0F0F0F0F)
    # In this form the compiler knows it as one instruction.
    return int((word * np.uint64(0x0101010101010101)) >> np.uint64(56))


def end_of(start_s: float, seconds: float) -> float:
    """Return when a reservation ends: after its start, also if its time is lost by rounding."""
    end_s = start_s + seconds
    return end_s if end_s > start_s else float(np.nextafter(start_s, np.inf))


def find_step(steps: Steps, at_s: float) -> int:
    """Return the last step that begins at a time or before, or -1."""
    low, high, times = 0, steps.meta[STEPS], steps.times
    while low < high:
        middle = (low + high) // 2
        if times[middle] <= at_s:
            low = middle + 1
        else:
            high = middle
    return low - 1


def step_at(steps: Steps, index: int, at_s: float) -> int:
    """Return the last step that begins at a time or before, but not before another one."""
    return index if at_s <= steps.times[index] else find_step(steps, at_s)


def cut(steps: Steps, at_s: float) -> int:
    """Return the step that begins at a time; divide a step if there is none."""
    times, facts, meta = steps.times, steps.facts, steps.meta
    index = find_step(steps, at_s)
    if times[index] == at_s:
        return index
    meta[SPARE] -= 1
    row = steps.spare[meta[SPARE]]
    for word in range(steps.free.shape[1]):
        steps.free[row, word] = steps.free[facts[ROW, index], word]
    index += 1
    for step in range(meta[STEPS], index, -1):
        times[step] = times[step - 1]
    for fact in range(4):
        for step in range(meta[STEPS], index, -1):
            facts[fact, step] = facts[fact, step - 1]
        facts[fact, index] = facts[fact, index - 1]
    times[index] = at_s
    facts[ROW, index] = row
    meta[STEPS] += 1
    return index


def join(steps: Steps, index: int) -> None:
    """Make a step part of the one before if the same hosts are free in both."""
    times, facts, meta = steps.times, steps.facts, steps.meta
    if index <= 0 or index >= meta[STEPS] or facts[COUNT, index] != facts[COUNT, index - 1]:
        return
    row, before = facts[ROW, index], facts[ROW, index - 1]
    for word in range(steps.free.shape[1]):
        if steps.free[row, word] != steps.free[before, word]:
            return
    for fact in (BEFORE, NOW):
        facts[fact, index - 1] = max(facts[fact, index - 1], facts[fact, index])
    steps.spare[meta[SPARE]] = row
    meta[SPARE] += 1
    meta[STEPS] -= 1
    for step in range(index, meta[STEPS]):
        times[step] = times[step + 1]
    for fact in range(4):
        for step in range(index, meta[STEPS]):
            facts[fact, step] = facts[fact, step + 1]


def change(steps: Steps, start_s: float, end_s: float, hosts: Array, freed: int) -> None:
    """Take hosts out of a period; or, if ``freed`` is an arrival, give them back.

    The jobs before this arrival have not tried the hosts.
    """
    facts, free = steps.facts, steps.free
    start_s = max(start_s, steps.times[0])
    if end_s <= start_s or start_s == np.inf:
        return
    first = cut(steps, start_s)
    last = cut(steps, end_s) if end_s < np.inf else steps.meta[STEPS]
    count = 0
    for word in range(free.shape[1]):
        count += count_bits(hosts[word])
    for index in range(first, last):
        row = facts[ROW, index]
        if freed:
            facts[COUNT, index] += count
            facts[NOW, index] = max(facts[NOW, index], freed)
            for word in range(free.shape[1]):
                free[row, word] |= hosts[word]
        else:
            facts[COUNT, index] -= count
            for word in range(free.shape[1]):
                free[row, word] &= ~hosts[word]
    if freed:
        # Steps that no reservation divides any more become one, so that moves leave no trace.
        join(steps, last)
        join(steps, first)


def are_same(hosts: Array, others: Array) -> bool:
    """True if two sets have the same hosts."""
    differing = 0
    for word in range(hosts.shape[0]):
        differing += hosts[word] != others[word]
    return differing == 0


def copy_hosts(hosts: Array, others: Array) -> None:
    """Make a set have the hosts of another."""
    for word in range(hosts.shape[0]):
        hosts[word] = others[word]


def forget_hosts(hosts: Array) -> None:
    """Make a set empty."""
    for word in range(hosts.shape[0]):
        hosts[word] = np.uint64(0)


def take_hosts(common: Array, free: Array, row: int, own: Array, is_own: bool) -> None:
    """Begin with the hosts that are free in a step, and one's own."""
    for word in range(common.shape[0]):
        common[word] = free[row, word] | own[word] if is_own else free[row, word]


def keep_common(common: Array, free: Array, row: int, own: Array, is_own: bool) -> int:
    """Keep what is also free in another step, or one's own; return how many hosts that is."""
    count = 0
    if is_own:
        for word in range(common.shape[0]):
            common[word] &= free[row, word] | own[word]
            count += count_bits(common[word])
    else:
        # Without views of rows, whose references would be counted.
        for word in range(common.shape[0]):
            common[word] &= free[row, word]
            count += count_bits(common[word])
    return count


def keep_lowest(common: Array, count: int) -> None:
    """Keep so many hosts with the lowest numbers."""
    for word in range(common.shape[0]):
        bits = common[word]
        here = count_bits(bits)
        if here > count:
            kept = np.uint64(0)
            for _ in range(count):
                low = bits & (~bits + np.uint64(1))
                kept |= low
                bits ^= low
            common[word] = kept
            here = count
        count -= here


def prefer(common: Array, first_choice: Array, width: int) -> None:
    """Keep hosts of the first choice if they are enough."""
    count = 0
    for word in range(common.shape[0]):
        count += count_bits(common[word] & first_choice[word])
    if count >= width:
        for word in range(common.shape[0]):
            common[word] &= first_choice[word]


def next_freed(steps: Steps, index: int, arrival: int) -> int:
    """Return the next step with hosts that became free since the last try of a job."""
    facts, size = steps.facts, steps.meta[STEPS]
    while index < size and facts[NOW, index] == 0 and facts[BEFORE, index] <= arrival:
        index += 1
    return index


def next_scarce(steps: Steps, index: int, wanted: Wanted) -> int:
    """Return the next step with too few hosts for a job."""
    facts, size = steps.facts, steps.meta[STEPS]
    width, first, last = wanted.width, wanted.own_first, wanted.own_end
    while index < size and (facts[COUNT, index] >= width or first <= index < last):
        index += 1
    return index


def first_unfit(steps: Steps, wanted: Wanted, index: int, end: int, common: Array) -> int:
    """Return the first step with too few hosts in common with those before; ``end`` if none."""
    first, last, width = wanted.own_first, wanted.own_end, wanted.width
    times, facts, free, own = steps.times, steps.facts, steps.free, wanted.own
    end_s = end_of(times[index], wanted.seconds)
    take_hosts(common, free, facts[ROW, index], own, first <= index < last)
    index += 1
    while index < end and times[index] < end_s:
        is_own = first <= index < last
        if keep_common(common, free, facts[ROW, index], own, is_own) < width:
            return index
        index += 1
    return end


def first_in_common(steps: Steps, wanted: Wanted, index: int, common: Array) -> int:
    """Return the first step from which on enough hosts are free up to the end of a step."""
    first, last, width = wanted.own_first, wanted.own_end, wanted.width
    facts, free, own = steps.facts, steps.free, wanted.own
    take_hosts(common, free, facts[ROW, index], own, first <= index < last)
    while index > 0:
        is_own = first <= index - 1 < last
        if keep_common(common, free, facts[ROW, index - 1], own, is_own) < width:
            break
        index -= 1
    return index


def find_limits(queue: Queue, notes: Notes, job: int) -> None:
    """Find before when a job cannot start because smaller ones could not.

    A job before it in this pass that needs no more hosts for no longer has found no start before
    its own one. Only what became free since then, by moves from its arrival on, can help.
    """
    starts, widths, lengths, gone = queue.starts, queue.widths, queue.lengths, queue.gone
    limits, marks, arrivals = notes.limits, notes.limit_marks, queue.arrivals
    width, length, start_s = widths[job], lengths[job], starts[job]
    count = 0
    last_s = -np.inf
    for other in range(job - 1, max(job - LIMITS_TRIED, 0) - 1, -1):
        if (
            starts[other] > last_s
            and widths[other] <= width
            and lengths[other] <= length
            and not gone[other]
        ):
            last_s = starts[other]
            limits[count] = last_s
            marks[count] = arrivals[other]
            count += 1
            if count == limits.shape[0] or last_s >= start_s:
                break
    notes.counts[LIMITS] = count


def next_limit(notes: Notes, start_s: float) -> int:
    """Return the first limit after a start; their number if there is none."""
    limit, count, limits = 0, notes.counts[LIMITS], notes.limits
    while limit < count and limits[limit] <= start_s:
        limit += 1
    return limit


def after_limit(notes: Notes, wanted: Wanted, start_s: float, limit: int) -> float:
    """Return a time before which no start is possible, because of a limit."""
    left, marks, mark = notes.left, notes.left_marks, notes.limit_marks[limit]
    later_s = min(notes.limits[limit], wanted.own_s - wanted.seconds)
    for move in range(notes.counts[MOVES] - 1, -1, -1):
        if marks[move] < mark:
            break
        if left[move, 1] > start_s:
            later_s = min(later_s, left[move, 0] - wanted.seconds)
    return float(later_s)


def after_freed(steps: Steps, wanted: Wanted, freed: int) -> float:
    """Return a time before which no start contains a step in which hosts became free."""
    if freed == steps.meta[STEPS]:
        return wanted.own_s
    return float(min(steps.times[freed] - wanted.seconds, wanted.own_s))


def search(steps: Steps, notes: Notes, wanted: Wanted) -> int:
    """Return the first step at which a job can start, or -1; ``common`` receives its hosts."""
    common, times, size = notes.common, steps.times, steps.meta[STEPS]
    index = 0
    freed = scarce = -1
    while index < size:
        start_s = times[index]
        if start_s < wanted.own_s:
            limit = next_limit(notes, start_s)
            # From its reservation on it has hosts that the smaller job did not have.
            if limit < notes.counts[LIMITS] and start_s + wanted.seconds <= wanted.own_s:
                later_s = after_limit(notes, wanted, start_s, limit)
            else:
                if freed < index:
                    freed = next_freed(steps, index, wanted.arrival)
                later_s = after_freed(steps, wanted, freed)
            later = step_at(steps, index, later_s)
            if later > index:
                index = later
                continue
        if scarce < index:
            scarce = next_scarce(steps, index, wanted)
        if scarce < size and times[scarce] < end_of(start_s, wanted.seconds):
            index = scarce + 1  # every start up to that step includes it
            continue
        unfit = first_unfit(steps, wanted, index, scarce, common)
        if unfit == scarce:
            if index == 0 and notes.counts[CHOOSES]:
                prefer(common, notes.first_choice, wanted.width)
            keep_lowest(common, wanted.width)
            return index
        # Every later start up to the step that failed includes it; go on with the first one
        # that has enough hosts in common with it.
        index = first_in_common(steps, wanted, unfit, common)
    forget_hosts(common)
    return -1


def place(steps: Steps, notes: Notes, width: int, seconds: float) -> float:
    """Reserve for a new job; return its start, and its hosts in ``common``."""
    now_s = steps.times[0]
    index = search(steps, notes, Wanted(0, now_s, width, seconds, notes.common, 0, 0))
    start_s = steps.times[index] if index >= 0 else np.inf
    change(steps, start_s, end_of(start_s, seconds), notes.common, 0)
    return start_s


def begin_pass(steps: Steps, notes: Notes) -> None:
    """What became free up to now has been tried by no job."""
    notes.counts[MOVES] = 0
    for index in range(steps.meta[STEPS]):
        steps.facts[BEFORE, index] = steps.facts[NOW, index]
        steps.facts[NOW, index] = 0


def try_job(steps: Steps, queue: Queue, notes: Notes, job: int) -> float:
    """Return the earliest start of a job that gives up its reservation."""
    now_s = steps.times[0]
    start_s, seconds = queue.starts[job], queue.lengths[job]
    own_first = own_end = 0
    end_s = end_of(start_s, seconds)
    if start_s < np.inf and end_s > now_s:
        own_first = cut(steps, max(start_s, now_s))
        own_end = cut(steps, end_s) if end_s < np.inf else steps.meta[STEPS]
    find_limits(queue, notes, job)
    wanted = Wanted(
        queue.arrivals[job], max(start_s, now_s), queue.widths[job], seconds, queue.hosts[job],
        own_first, own_end,
    )  # fmt: skip
    found = search(steps, notes, wanted)
    return steps.times[found] if found >= 0 else np.inf


def move(steps: Steps, queue: Queue, notes: Notes, first_job: int) -> int:
    """Let each job from one on move to an earlier hole; ``gone`` receives 1 where a job starts.

    Return the job to go on with when there is more room for steps, or the number of jobs.
    """
    jobs = queue.starts.shape[0]
    if first_job == 0:
        begin_pass(steps, notes)
    for job in range(first_job, jobs):
        if queue.gone[job]:
            continue
        if steps.meta[SPARE] < STEPS_OF_CHANGE:
            return job
        start_s, hosts = queue.starts[job], queue.hosts[job]
        new_s = try_job(steps, queue, notes, job)
        if start_s <= steps.times[0] < new_s:
            # A message came so late, by rounding, that the next reservation is in the way.
            new_s = start_s
            copy_hosts(notes.common, hosts)
        if new_s <= steps.times[0]:
            queue.gone[job] = 1
        if new_s == start_s and are_same(notes.common, hosts):
            continue
        seconds, arrival = queue.lengths[job], queue.arrivals[job]
        if start_s < np.inf:
            end_s = end_of(start_s, seconds)
            change(steps, start_s, end_s, hosts, arrival)
            count = notes.counts[MOVES]
            notes.left[count, 0], notes.left[count, 1] = start_s, end_s
            notes.left_marks[count] = arrival
            notes.counts[MOVES] += 1
        copy_hosts(hosts, notes.common)
        queue.starts[job] = new_s
        change(steps, new_s, end_of(new_s, seconds), notes.common, 0)
    return int(jobs)


RESERVATION_FUNCTIONS: Final[tuple[Callable[..., Any], ...]] = (
    count_bits, end_of, find_step, step_at, cut, join, change, are_same, copy_hosts, forget_hosts,
    take_hosts, keep_common, keep_lowest, prefer, next_freed, next_scarce, first_unfit,
    first_in_common, find_limits, next_limit, after_limit, after_freed, search, place, begin_pass,
    try_job, move,
)  # fmt: skip
INLINE_FUNCTIONS: Final = (
    count_bits, end_of, find_step, step_at, are_same, copy_hosts, forget_hosts, take_hosts,
    keep_common, next_freed, next_scarce, first_unfit, first_in_common, find_limits, next_limit,
    after_limit, after_freed, search, try_job,
)  # fmt: skip
ENTRY_FUNCTIONS: Final = (change, place, move)
