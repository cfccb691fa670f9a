"""Trials with smaller arguments, and with machines and steps that have nothing special."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any, TypeVar

from equipoise.fuzz.trial.fewer import with_machines
from equipoise.fuzz.trial.size import bare
from equipoise.fuzz.trial.trial import Trial
from equipoise.model.action import Allocate
from equipoise.model.host import Host
from equipoise.model.plan import Step
from equipoise.model.vm import Vm
from equipoise.spec.choose import in_order

M = TypeVar("M", Host, Vm)


def smaller_arguments(trial: Trial) -> Iterator[Trial]:
    """One member or group less, or a number that is nearer to 0."""
    for name, value in trial.demand.arguments.items():
        for smaller in _smaller(value):
            arguments = {**trial.demand.arguments, name: smaller}
            yield replace(trial, demand=replace(trial.demand, arguments=arguments))


def plainer_machines(trial: Trial) -> Iterator[Trial]:
    """All machines bare, or one of them in one respect; of a pair, both."""
    hosts, vms = trial.initial.hosts, trial.initial.vms
    yield with_machines(trial, map(bare, hosts.values()), map(bare, vms.values()))
    for host in hosts.values():
        for plainer_host in _plainer(host):
            yield with_machines(trial, hosts.but({host.id: plainer_host}).values(), vms.values())
    for vm in vms.values():
        for plainer_vm in _plainer(vm):
            yield with_machines(trial, hosts.values(), vms.but({vm.id: plainer_vm}).values())
        if vm.ft_pair is not None and vm.ft_pair in vms:
            pair = (vm, vms[vm.ft_pair])
            alone = vms.but({one.id: one.but(ft_pair=None) for one in pair})
            yield with_machines(trial, hosts.values(), alone.values())


def plainer_steps(trial: Trial) -> Iterator[Trial]:
    """One step that allocates less, waits for fewer others, or has no reason."""
    for place, step in enumerate(trial.steps):
        for plainer in _plainer_step(step):
            yield replace(trial, steps=(*trial.steps[:place], plainer, *trial.steps[place + 1 :]))


def _smaller(value: Any) -> Iterator[Any]:
    """What is smaller than an argument, and of its kind; text is not."""
    match value:
        case int():
            yield from _nearer(value)
        case tuple():
            yield from (value[:at] + value[at + 1 :] for at in reversed(range(len(value))))
        case frozenset():
            for one in reversed(in_order(value)):
                rest = value - {one}
                yield rest
                groups = _smaller(one) if isinstance(one, frozenset) else ()
                yield from (rest | {group} for group in groups if group)


def _nearer(number: int) -> Iterator[int]:
    """What is nearer to 0: at once, half way, by a quarter and so on, and by one."""
    sign, less = (-1, -number) if number < 0 else (1, number)
    while less:
        yield number - sign * less
        less //= 2


def _plainer(machine: M) -> Iterator[M]:
    """A machine with one field as if it had not been given, or less of what is in it."""
    usual = bare(machine)
    for name in machine.__struct_fields__:
        value = getattr(machine, name)
        if value != getattr(usual, name):
            yield machine.but(**{name: getattr(usual, name)})
            if isinstance(value, Mapping):
                yield from (machine.but(**{name: less}) for less in _less(value))


def _less(entries: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    for name, value in entries.items():
        yield {key: one for key, one in entries.items() if key != name}
        yield from ({**entries, name: smaller} for smaller in _smaller(value))


def _plainer_step(step: Step) -> Iterator[Step]:
    if isinstance(step.action, Allocate):
        for amount in _nearer(step.action.amount):
            yield step.but(action=step.action.but(amount=amount))
    for after in _smaller(step.after):
        yield step.but(after=after)
    yield step.but(reason="")
