"""Drawn trials as the arrays in which the specification judges many cases at once."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Self

import numpy as np

from equipoise.fuzz.generate.decode import SECOND_MS, TrialSource
from equipoise.fuzz.generate.draw.trial_arrays import (
    CHOICE,
    DEFAULT_HOST,
    DEFAULT_VM,
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
    TrialArrays,
)
from equipoise.fuzz.generate.draw.trial_arrays import END as END_COLUMN
from equipoise.fuzz.generate.draw.trial_arrays import START as START_COLUMN
from equipoise.fuzz.generate.parameters import DrawableParameter
from equipoise.spec.batch.cases import (
    FIGURE_READERS,
    HOSTS_MAX,
    KIND_CODES,
    NEVER,
    NOWHERE,
    VMS_MAX,
    Array,
    CaseArrays,
    CaseNumbering,
    StepArrays,
    Unbatchable,
)
from equipoise.spec.batch.values import (
    BatchBitSet,
    BatchScalar,
    BatchValue,
    MaskedItems,
    number_value,
)
from equipoise.spec.requirement import Case

_NO_NAMES: Final = CaseNumbering((), ())


@dataclass(eq=False, kw_only=True)
class DrawnCases(CaseArrays):
    """Cases that were drawn as arrays; objects are made only on demand."""

    source: TrialSource
    out: TrialArrays

    @classmethod
    def of_drawn(cls, source: TrialSource, out: TrialArrays, cases: Sequence[Case]) -> Self:
        """The cases of drawn trials."""
        hosts, vms = (max(1, int(out.counts[:, column].max())) for column in (0, 1))
        if vms > VMS_MAX or hosts > HOSTS_MAX:
            raise Unbatchable(f"{vms} VMs and {hosts} hosts exceed the limits of arrays")
        text_codes = {"": 0} | KIND_CODES
        # A resource may have the name of a kind of action; both then share the code, as equal texts
        # must.
        for text in source.resources:
            text_codes.setdefault(text, len(text_codes))
        has_host, has_vm = _is_used(out.counts[:, 0], hosts), _is_used(out.counts[:, 1], vms)
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
            steps=_steps(out, [text_codes[text] for text in source.resources]),
            words=text_codes,
            source=source,
            out=out,
        )

    def agents(self) -> Array:
        """Which VMs are agents."""
        return _case_last(self.out.agent[:, : self.vms])

    def ranks(self) -> Array:
        """The rank of each step by time, as (step, case); -1 without a step."""
        if self._ranks is None:
            times = self.steps.start_ms, self.steps.end_ms
            order = np.lexsort(
                (times[1], times[0]), axis=0
            )  # steps with equal times are in the order of their names
            ranks = np.argsort(order, axis=0, kind="stable")
            self._ranks = np.where(self.steps.kind < 0, -1, ranks)
        return self._ranks

    def partners(self) -> Array:
        """The fault-tolerant partner of each VM, as a set of bits."""
        pair = self.out.pair[:, : self.vms]
        unpaired = (pair == NONE) | ~_is_used(self.out.counts[:, 1], self.vms)
        bits = np.left_shift(np.uint64(1), np.maximum(pair, 0).astype(np.uint64))
        return _case_last(np.where(unpaired, np.uint64(0), bits))

    def _gather(self, of: str, what: str, name: str) -> Array:
        out, source = self.out, self.source
        match of, what:
            case "vm", "cons" if name in source.resources:
                found = out.consumption[:, : self.vms, source.resources.index(name)]
            case "host", "capa" if name in source.resources:
                # A host without the resource (-1) has none of it for formulas.
                found = np.maximum(0, out.capacity[:, : self.hosts, source.resources.index(name)])
            case "vm", "label":
                found = self._label_codes(out.vm_label[:, : self.vms], name)
            case "host", "label":
                found = self._label_codes(out.host_label[:, : self.hosts], name)
            case "vm", "tenant":
                # The index -1 (no tenant) reads the last entry.
                codes = [*map(self.text_code, source.options.tenants), 0]
                found = np.array(codes)[out.tenant[:, : self.vms]]
            case "vm", "agent":
                found = out.agent[:, : self.vms]
            case _:
                found = self._default_figures(of, what, name)
        return _case_last(found.astype(np.int64))

    def _label_codes(self, labels: Array, key: str) -> Array:
        """The codes of the values of a label."""
        keys = [name for name, _ in self.source.labels]
        if key not in keys:
            return np.zeros(labels.shape[:2], np.int64)
        column = keys.index(key)
        codes = [0, *map(self.text_code, self.source.labels[column][1])]
        return np.array(codes)[labels[:, :, column]]

    def _default_figures(self, of: str, what: str, name: str) -> Array:
        """A figure that is the same for all machines, because it is not drawn."""
        rows = self.vms if of == "vm" else self.hosts
        found = FIGURE_READERS[f"{what} of {of}"](DEFAULT_VM if of == "vm" else DEFAULT_HOST, name)
        return np.full(
            (len(self), rows), self.text_code(found) if isinstance(found, str) else found
        )


def values_of(source: TrialSource, out: TrialArrays, cases: DrawnCases) -> dict[str, BatchValue]:
    """The arguments of all trials as values of formulas."""
    return {
        parameter.name: _VALUES[parameter.what](parameter, out.arguments[:, i], cases)
        for i, parameter in enumerate(source.parameters)
    }


def _some_vms(_: DrawableParameter, rows: Array, cases: CaseArrays) -> BatchValue:
    return BatchBitSet("vm", _bits(rows[:, : cases.vms] > 0)[None])


def _some_hosts(_: DrawableParameter, rows: Array, cases: CaseArrays) -> BatchValue:
    return BatchBitSet("host", _bits(rows[:, : cases.hosts] > 0)[None])


def _vm_groups(_: DrawableParameter, rows: Array, cases: CaseArrays) -> BatchValue:
    return _groups("vm", rows[:, : cases.vms])


def _host_groups(_: DrawableParameter, rows: Array, cases: CaseArrays) -> BatchValue:
    return _groups("host", rows[:, : cases.hosts])


def _groups(kind: str, rows: Array) -> BatchValue:
    groups = []
    for group in range(1, int(rows.max(initial=0)) + 1):
        members = rows == group
        groups.append((members.any(axis=1)[None], BatchBitSet(kind, _bits(members)[None])))
    return MaskedItems(tuple(groups), is_list=False)


def _vm_list(_: DrawableParameter, rows: Array, cases: CaseArrays) -> BatchValue:
    items = []
    for i in range(int((rows > 0).sum(axis=1).max(initial=0))):
        numbers = rows[:, i]
        items.append(((numbers > 0)[None], BatchScalar("vm", np.maximum(numbers - 1, 0)[None])))
    return MaskedItems(tuple(items), is_list=True)


def _one_vm(_: DrawableParameter, rows: Array, cases: CaseArrays) -> BatchValue:
    return BatchScalar("vm", rows[:, 0][None])


def _one_host(_: DrawableParameter, rows: Array, cases: CaseArrays) -> BatchValue:
    return BatchScalar("host", rows[:, 0][None])


def _number(_: DrawableParameter, rows: Array, cases: CaseArrays) -> BatchValue:
    return number_value(rows[:, 0][None], int(np.abs(rows[:, 0]).max(initial=0)))


def _choice(parameter: DrawableParameter, rows: Array, cases: CaseArrays) -> BatchValue:
    # Names that formulas look up must be constants; trials are grouped so that they are.
    if (rows[:, 0] == rows[0, 0]).all():
        return _constant(cases, parameter.choices[rows[0, 0]])
    if isinstance(parameter.choices[0], int):
        return number_value(
            np.array(parameter.choices)[rows[:, 0]][None], max(map(abs, parameter.choices))
        )
    return BatchScalar(
        "string", np.array([cases.text_code(text) for text in parameter.choices])[rows[:, 0]][None]
    )


def _some_choices(parameter: DrawableParameter, rows: Array, cases: CaseArrays) -> BatchValue:
    items = []
    for i, choice in enumerate(parameter.choices):
        items.append(((rows[:, i] > 0)[None], _constant(cases, choice)))
    return MaskedItems(tuple(items), is_list=False)


def _constant(cases: CaseArrays, value: str | int) -> BatchScalar:
    if isinstance(value, int):
        return number_value(value, abs(value))
    return BatchScalar("string", cases.text_code(value))


_VALUES: Final[Mapping[int, Callable[[DrawableParameter, Array, CaseArrays], BatchValue]]] = {
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


def _steps(out: TrialArrays, resources: Sequence[int]) -> StepArrays:
    most = int(out.counts[:, 2].max(initial=0))
    is_step = _is_used(out.counts[:, 2], most)
    fields = np.moveaxis(out.steps[:, :most], 2, 0).copy()
    for column in (SOURCE, TARGET, SWITCH):
        fields[column][fields[column] == NONE] = NOWHERE
    fields[START_COLUMN] *= SECOND_MS
    fields[END_COLUMN] *= SECOND_MS
    # The index -1 (no resource) reads the last entry.
    fields[RESOURCE] = np.array([*resources, NONE])[fields[RESOURCE]]
    for column, unused in enumerate(_UNUSED):
        fields[column][~is_step] = unused
    assert fields.shape[0] == len(_UNUSED) > KIND
    shaped = np.ascontiguousarray(fields.transpose(0, 2, 1))
    return StepArrays(**dict(zip(StepArrays.__slots__, shaped, strict=True)))


_UNUSED: Final = (-1, -1, NOWHERE, NOWHERE, NOWHERE, -1, 0, NEVER, NEVER)


def _is_used(counts: Array, most: int) -> Array:
    """Whether each row is used: (case, row)."""
    used: Array = np.arange(most)[None] < counts[:, None]
    return used


def _bits(members: Array) -> Array:
    """Sets as integers with one bit for each member, one integer for each case."""
    bit = np.left_shift(np.uint64(1), np.arange(members.shape[1], dtype=np.uint64))
    sets: Array = (members * bit).sum(axis=1, dtype=np.uint64)
    return sets


def _small(array: Array) -> Array:
    return _case_last(array.astype(np.int8))


def _case_last(array: Array) -> Array:
    """The transposed array, with the case as the last axis."""
    return np.ascontiguousarray(array.T)
