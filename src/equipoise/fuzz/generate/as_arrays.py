"""Drawn trials as the arrays in which the specification judges many at once."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Self

import numpy as np

from equipoise.fuzz.generate.draw.numbers import (
    CHOICE,
    HOST_GROUPS,
    KIND,
    NONE,
    NUMBER,
    ONE_HOST,
    ONE_VM,
    RESOURCE,
    SOME_CHOICES,
    SOME_HOSTS,
    SOME_VMS,
    SOURCE,
    SWITCH,
    TARGET,
    VM_GROUPS,
    VM_LIST,
    Trials,
)
from equipoise.fuzz.generate.draw.numbers import END as END_COLUMN
from equipoise.fuzz.generate.draw.numbers import START as START_COLUMN
from equipoise.fuzz.generate.parameters import Drawable
from equipoise.fuzz.generate.read import SECOND_MS, Source
from equipoise.fuzz.generate.usual import USUAL_HOST, USUAL_VM
from equipoise.spec.batch.cases import (
    ASKED,
    HOSTS_MAX,
    KIND_CODES,
    NEVER,
    NOWHERE,
    VMS_MAX,
    Array,
    Cases,
    Names,
    StepArrays,
    Unbatchable,
)
from equipoise.spec.batch.values import Bits, Entries, Plain, Value, number
from equipoise.spec.case import Case

_NO_NAMES: Final = Names((), ())


@dataclass(eq=False, kw_only=True)
class DrawnCases(Cases):
    """Cases that were arrays from the first; objects are made of those that are asked for."""

    source: Source
    out: Trials

    @classmethod
    def of_drawn(cls, source: Source, out: Trials, cases: Sequence[Case]) -> Self:
        """Take over what was drawn."""
        hosts, vms = (max(1, int(out.counts[:, column].max())) for column in (0, 1))
        if vms > VMS_MAX or hosts > HOSTS_MAX:
            raise Unbatchable(f"{vms} VMs and {hosts} hosts are too many")
        words = {"": 0} | KIND_CODES
        for text in source.resources:
            words.setdefault(text, len(words))
        has_host, has_vm = _there(out.counts[:, 0], hosts), _there(out.counts[:, 1], vms)
        where = np.where(out.vm_host[:, :vms] == NONE, NOWHERE, out.vm_host[:, :vms])
        return cls(
            cases=cases,
            vms=vms,
            hosts=hosts,
            names=_NO_NAMES,
            vm_present=_bits(has_vm),
            host_present=_bits(has_host),
            vm_state=_small(np.where(has_vm, out.vm_state[:, :vms], NOWHERE)),
            vm_host=_small(np.where(has_vm, where, NOWHERE)),
            host_state=_small(np.where(has_host, out.host_state[:, :hosts], NOWHERE)),
            steps=_steps(out, [words[text] for text in source.resources]),
            words=words,
            source=source,
            out=out,
        )

    def agents(self) -> Array:
        """Which VMs are agents."""
        return _last(self.out.agent[:, : self.vms])

    def ranks(self) -> Array:
        """The place of each step in order of time, by (step, case); -1 where there is none."""
        if self._ranks is None:
            times = self.steps.start_ms, self.steps.end_ms
            order = np.lexsort((times[1], times[0]), axis=0)  # the names are in order already
            ranks = np.argsort(order, axis=0, kind="stable")
            self._ranks = np.where(self.steps.kind < 0, -1, ranks)
        return self._ranks

    def partners(self) -> Array:
        """The fault-tolerant partner of each VM, as a set of bits."""
        pair = self.out.pair[:, : self.vms]
        alone = (pair == NONE) | ~_there(self.out.counts[:, 1], self.vms)
        bits = np.left_shift(np.uint64(1), np.maximum(pair, 0).astype(np.uint64))
        return _last(np.where(alone, np.uint64(0), bits))

    def _gather(self, of: str, what: str, name: str) -> Array:
        out, source = self.out, self.source
        match of, what:
            case "vm", "cons" if name in source.resources:
                found = out.consumption[:, : self.vms, source.resources.index(name)]
            case "host", "capa" if name in source.resources:
                found = np.maximum(0, out.capacity[:, : self.hosts, source.resources.index(name)])
            case "vm", "label":
                found = self._words(out.vm_label[:, : self.vms], name)
            case "host", "label":
                found = self._words(out.host_label[:, : self.hosts], name)
            case "vm", "tenant":
                words = [*map(self.word, source.options.tenants), 0]
                found = np.array(words)[out.tenant[:, : self.vms]]
            case "vm", "agent":
                found = out.agent[:, : self.vms]
            case _:
                found = self._usual(of, what, name)
        return _last(found.astype(np.int64))

    def _words(self, labels: Array, key: str) -> Array:
        """The numbers of the values of a label."""
        keys = [one for one, _ in self.source.labels]
        if key not in keys:
            return np.zeros(labels.shape[:2], np.int64)
        place = keys.index(key)
        words = [0, *map(self.word, self.source.labels[place][1])]
        return np.array(words)[labels[:, :, place]]

    def _usual(self, of: str, what: str, name: str) -> Array:
        """What is the same for all machines, because chance has no say in it."""
        rows = self.vms if of == "vm" else self.hosts
        found = ASKED[f"{what} of {of}"](USUAL_VM if of == "vm" else USUAL_HOST, name)
        return np.full((len(self), rows), self.word(found) if isinstance(found, str) else found)


def values_of(source: Source, out: Trials, cases: DrawnCases) -> dict[str, Value]:
    """The arguments of all trials, as the formulas want them."""
    return {
        one.name: _VALUES[one.what](one, out.arguments[:, place], cases)
        for place, one in enumerate(source.parameters)
    }


def _some_vms(_: Drawable, rows: Array, cases: Cases) -> Value:
    return Bits("vm", _bits(rows[:, : cases.vms] > 0)[None])


def _some_hosts(_: Drawable, rows: Array, cases: Cases) -> Value:
    return Bits("host", _bits(rows[:, : cases.hosts] > 0)[None])


def _vm_groups(_: Drawable, rows: Array, cases: Cases) -> Value:
    return _groups("vm", rows[:, : cases.vms])


def _host_groups(_: Drawable, rows: Array, cases: Cases) -> Value:
    return _groups("host", rows[:, : cases.hosts])


def _groups(kind: str, rows: Array) -> Value:
    found = []
    for group in range(1, int(rows.max(initial=0)) + 1):
        members = rows == group
        found.append((members.any(axis=1)[None], Bits(kind, _bits(members)[None])))
    return Entries(tuple(found), is_list=False)


def _vm_list(_: Drawable, rows: Array, cases: Cases) -> Value:
    found = []
    for place in range(int((rows > 0).sum(axis=1).max(initial=0))):
        one = rows[:, place]
        found.append(((one > 0)[None], Plain("vm", np.maximum(one - 1, 0)[None])))
    return Entries(tuple(found), is_list=True)


def _one_vm(_: Drawable, rows: Array, cases: Cases) -> Value:
    return Plain("vm", rows[:, 0][None])


def _one_host(_: Drawable, rows: Array, cases: Cases) -> Value:
    return Plain("host", rows[:, 0][None])


def _number(_: Drawable, rows: Array, cases: Cases) -> Value:
    return number(rows[:, 0][None], int(np.abs(rows[:, 0]).max(initial=0)))


def _choice(one: Drawable, rows: Array, cases: Cases) -> Value:
    if (rows[:, 0] == rows[0, 0]).all():
        return _constant(cases, one.choices[rows[0, 0]])
    if isinstance(one.choices[0], int):
        return number(np.array(one.choices)[rows[:, 0]][None], max(map(abs, one.choices)))
    return Plain("string", np.array([cases.word(text) for text in one.choices])[rows[:, 0]][None])


def _some_choices(one: Drawable, rows: Array, cases: Cases) -> Value:
    found = []
    for place, choice in enumerate(one.choices):
        found.append(((rows[:, place] > 0)[None], _constant(cases, choice)))
    return Entries(tuple(found), is_list=False)


def _constant(cases: Cases, value: str | int) -> Plain:
    if isinstance(value, int):
        return number(value, abs(value))
    return Plain("string", cases.word(value))


_VALUES: Final[Mapping[int, Callable[[Drawable, Array, Cases], Value]]] = {
    SOME_VMS: _some_vms,
    SOME_HOSTS: _some_hosts,
    VM_GROUPS: _vm_groups,
    HOST_GROUPS: _host_groups,
    VM_LIST: _vm_list,
    ONE_VM: _one_vm,
    ONE_HOST: _one_host,
    NUMBER: _number,
    CHOICE: _choice,
    SOME_CHOICES: _some_choices,
}


def _steps(out: Trials, resources: Sequence[int]) -> StepArrays:
    most = int(out.counts[:, 2].max(initial=0))
    there = _there(out.counts[:, 2], most)
    fields = np.moveaxis(out.steps[:, :most], 2, 0).copy()
    for column in (SOURCE, TARGET, SWITCH):
        fields[column][fields[column] == NONE] = NOWHERE
    fields[START_COLUMN] *= SECOND_MS
    fields[END_COLUMN] *= SECOND_MS
    fields[RESOURCE] = np.array([*resources, NONE])[fields[RESOURCE]]
    for column, unused in enumerate(_UNUSED):
        fields[column][~there] = unused
    assert fields.shape[0] == len(_UNUSED) > KIND
    shaped = np.ascontiguousarray(fields.transpose(0, 2, 1))
    return StepArrays(**dict(zip(StepArrays.__slots__, shaped, strict=True)))


_UNUSED: Final = (-1, -1, NOWHERE, NOWHERE, NOWHERE, -1, 0, NEVER, NEVER)


def _there(counts: Array, most: int) -> Array:
    """Which rows are used: (case, row)."""
    found: Array = np.arange(most)[None] < counts[:, None]
    return found


def _bits(members: Array) -> Array:
    """Sets as bits, one for each case."""
    places = np.left_shift(np.uint64(1), np.arange(members.shape[1], dtype=np.uint64))
    found: Array = (members * places).sum(axis=1, dtype=np.uint64)
    return found


def _small(array: Array) -> Array:
    return _last(array.astype(np.int8))


def _last(array: Array) -> Array:
    """The same with the case as the last axis."""
    return np.ascontiguousarray(array.T)
