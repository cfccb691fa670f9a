"""What a person asks a campaign for, put together with what is known of the target."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from equipoise.cli.answer import progress_console
from equipoise.cli.fuzzing.files import Files
from equipoise.cli.read import read_bytes, read_text
from equipoise.cli.spec import not_in_library
from equipoise.errors import InvalidInput, Problem
from equipoise.fuzz.campaign import Campaign, Limits
from equipoise.fuzz.generate import Generator, Options
from equipoise.fuzz.generate.asked import options_with
from equipoise.fuzz.generate.generator import Impossible
from equipoise.fuzz.registry import find_known, names_like, the_scheduler
from equipoise.fuzz.schedulers import Scheduler
from equipoise.fuzz.schedulers.known import Known
from equipoise.fuzz.trial.stored import Stored, read_lines
from equipoise.spec.library import (
    all_constraints,
    constraint_named,
    library,
    library_constraints,
)
from equipoise.spec.library import own as own_specification

Span = tuple[int, int]


@dataclass(frozen=True, slots=True)
class Wishes:
    """What a person asks for besides the target."""

    constraints: tuple[str, ...] = ()
    groups: tuple[str, ...] = ()
    spec: Path | None = None
    """A file with constraints of one's own."""
    settings: tuple[str, ...] = ()
    """Such as ``repair=on``."""
    limits: Limits = field(default_factory=Limits)
    seed: int = 0
    hosts: Span | None = None
    vms: Span | None = None
    changes: tuple[str, ...] = ()
    """Of what trials are like, such as ``actions=[0,1]``."""
    workers: str = "1"
    save: Path | None = None
    replay: Path | None = None
    known: Path | None = None
    files: Files = field(default_factory=Files)


@dataclass(frozen=True, slots=True)
class Order:
    """A campaign that is ready to begin."""

    known: Known
    settings: dict[str, str]
    campaign: Campaign
    make: Callable[[], Scheduler]
    familiar: tuple[Stored, ...] | None
    """The findings that are known already; none at all if nobody keeps a file of them."""
    set_by_hand: dict[str, str] = field(default_factory=dict)
    """Those of the settings that somebody asked for."""


def order_of(target: str, wishes: Wishes) -> Order:
    """Put together what was asked for; a target that is not there is told at once."""
    known = the_target(target)
    if wishes.replay is not None and wishes.known is not None:
        what = "is for campaigns: cases that are judged again are compared with nothing"
        cure = "leave out --known or --replay"
        raise InvalidInput("--known", [Problem(key="", what=what, cure=cure)])
    missing = known.missing()
    if missing:
        raise InvalidInput(target, [Problem(key="", what=missing)])
    settings = _settings(known, wishes.settings)
    make = partial(the_scheduler, target, tuple(sorted(settings.items())))
    own = "" if wishes.spec is None else read_text(wishes.spec)
    options = _options(known, wishes)
    campaign = Campaign(
        target,
        make,
        _possible(_constraints(known, wishes, own), options, wishes, own),
        options,
        wishes.seed,
        wishes.limits,
        own,
    )
    by_hand = dict(one.split("=", 1) for one in wishes.settings)
    familiar = _familiar(known, settings, wishes.known)
    return Order(known, settings, campaign, make, familiar, by_hand)


def the_target(name: str) -> Known:
    """What is known of a target."""
    found = find_known(name)
    if found is None:
        like = " or ".join(names_like(name))
        cure = f"did you mean {like}?" if like else "'equipoise fuzz --list' lists them"
        raise InvalidInput(name, [Problem(key="", what="is no target", cure=cure)])
    return found


def _options(known: Known, wishes: Wishes) -> Options:
    sizes = {"hosts": wishes.hosts, "vms": wishes.vms}
    options = known.options.but(**{name: one for name, one in sizes.items() if one is not None})
    return options_with(options, wishes.changes)


def _constraints(known: Known, wishes: Wishes, own: str) -> tuple[str, ...]:
    """Those that were asked for, by name or by group; else one's own, or all the target knows."""
    mine = tuple(own_specification(own, str(wishes.spec)).constraints)
    if wishes.spec is not None and not mine:
        problem = Problem(key="", what="declares no constraint", cure="leave out --spec")
        raise InvalidInput(str(wishes.spec), [problem])
    wished = tuple(one if one in mine else _named(one) for one in wishes.constraints)
    able = known.constraints or tuple(library_constraints())
    if not wished and not wishes.groups:
        return mine or able
    grouped = [name for group in wishes.groups for name in _group(group) if name in able]
    found = tuple(dict.fromkeys((*wished, *grouped)))
    if not found:
        what = f"{known.name} knows none of the constraints of {', '.join(wishes.groups)}"
        raise InvalidInput("--group", [Problem(key="", what=what)])
    return found


def _possible(
    names: tuple[str, ...], options: Options, wishes: Wishes, own: str
) -> tuple[str, ...]:
    """Those of which trials can be drawn as they are wished for; who is named must be possible."""
    if wishes.replay is not None:
        return names
    homes, found = all_constraints(own), list[str]()
    is_named = bool(wishes.constraints) or wishes.spec is not None
    why: Impossible | None = None
    for name in names:
        try:
            Generator(homes[name], name, options, wishes.seed).trial(0)
            found.append(name)
        except Impossible as error:
            if is_named:
                raise
            why = why or error
    if why is not None:
        if not found:
            raise why
        left = ", ".join(one for one in names if one not in found)
        line = f"left out, for there can be no such trials of them: {left}"
        progress_console().print(line, soft_wrap=True)
    return tuple(found)


def _named(name: str) -> str:
    found = constraint_named(name)
    if found is None:
        raise not_in_library(name)
    return found


def _group(name: str) -> Sequence[str]:
    groups = library()
    if name not in groups:
        what = f"there is no group {name}"
        raise InvalidInput("--group", [Problem(key="", what=what, cure=", ".join(groups))])
    return tuple(groups[name].constraints)


def _settings(known: Known, asked: Sequence[str]) -> dict[str, str]:
    """What is set, and what is as usual."""
    found = {name: values[0] for name, values in known.settings.items()}
    for one in asked:
        name, _, value = one.partition("=")
        if value not in known.settings.get(name, ()):
            able = [f"{key}={each}" for key, values in known.settings.items() for each in values]
            cure = ", ".join(able) or f"{known.name} has nothing to set"
            problem = Problem(key="", what=f"{one!r} is no setting of {known.name}", cure=cure)
            raise InvalidInput("--with", [problem])
        found[name] = value
    return found


def _familiar(
    known: Known, settings: dict[str, str], given: Path | None
) -> tuple[Stored, ...] | None:
    path = given or known.findings
    if path is None:
        return None
    usual = {name: values[0] for name, values in known.settings.items()}
    lines = list(read_lines(read_bytes(path), str(path)))
    mine = [one for one in lines if one.target == known.name]
    if given is not None and lines and not mine:
        others = ", ".join(dict.fromkeys(one.target for one in lines))
        what = f"it tells of {others}, and of {known.name} nothing"
        problem = Problem(key="target", what=what, cure="name another file")
        raise InvalidInput(str(path), [problem])
    _check_version(known, mine, path)
    return tuple(one for one in mine if usual | dict(one.settings) == settings)


def _check_version(known: Known, findings: Sequence[Stored], path: Path) -> None:
    """Refuse to compare with what was found in another version."""
    other = next((one for one in findings if not one.is_of(known.version)), None)
    if other is not None:
        what = f"it tells of {known.name} {other.target_version}, and here is {known.version}"
        cure = "compare with findings of the same version, or judge them again by --replay"
        raise InvalidInput(str(path), [Problem(key="target_version", what=what, cure=cure)])
