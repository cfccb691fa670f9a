"""The options of a campaign, checked and combined with the defaults of its target."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from equipoise.adapters.targets.scheduler import Scheduler, SchedulerEntry
from equipoise.api.loading import read_bytes
from equipoise.cli.file_io import check_writable, print_page_written, read_text, write_file
from equipoise.cli.output import progress_console
from equipoise.cli.spec.constraints import unknown_constraint
from equipoise.errors import InvalidInput
from equipoise.fuzz.campaign import CampaignLimits, CampaignReport, FuzzCampaign
from equipoise.fuzz.generate import Generator, TrialOptions
from equipoise.fuzz.generate.generator import ImpossibleTrials
from equipoise.fuzz.generate.parameters import override_options
from equipoise.fuzz.registry import find_scheduler, make_scheduler, similar_names
from equipoise.fuzz.reports import CampaignAccount, render_csv, render_junit, render_page
from equipoise.fuzz.trial.stored import StoredTrial, read_lines
from equipoise.model.quantity import format_count
from equipoise.spec.library import (
    all_constraints,
    custom_specification,
    find_constraint,
    library,
    library_constraints,
)


@dataclass(frozen=True, slots=True)
class ReportFiles:
    """Files for the page, the table and the JUnit document; ``None`` for no file."""

    page: Path | None = None
    csv: Path | None = None
    junit: Path | None = None

    def check(self) -> None:
        """Reject files that cannot be written, before a campaign and not after it."""
        for path in (self.page, self.csv, self.junit):
            if path is not None:
                check_writable(path)

    def write(self, account: CampaignAccount) -> None:
        """Write the requested files."""
        if self.csv is not None:
            write_file(self.csv, render_csv([account]))
        if self.junit is not None:
            write_file(self.junit, render_junit([account]))
        if self.page is not None:
            write_file(self.page, render_page(account).encode())
            print_page_written(self.page)


Span = tuple[int, int]


@dataclass(frozen=True, slots=True)
class FuzzOptions:
    """The options of a campaign besides its target."""

    constraints: tuple[str, ...] = ()
    groups: tuple[str, ...] = ()
    spec: Path | None = None
    """A file with constraints of the user."""
    settings: tuple[str, ...] = ()
    """Such as ``repair=on``."""
    limits: CampaignLimits = field(default_factory=CampaignLimits)
    seed: int = 0
    hosts: Span | None = None
    vms: Span | None = None
    changes: tuple[str, ...] = ()
    """Changes of the trial generator, such as ``actions=[0,1]``."""
    workers: str = "1"
    save: Path | None = None
    replay: Path | None = None
    known: Path | None = None
    files: ReportFiles = field(default_factory=ReportFiles)


@dataclass(frozen=True, slots=True)
class PreparedCampaign:
    """A campaign that is ready to start."""

    known: SchedulerEntry
    settings: dict[str, str]
    campaign: FuzzCampaign
    make: Callable[[], Scheduler]
    known_findings: tuple[StoredTrial, ...] | None
    """The known findings; ``None`` without a file of known findings."""
    set_by_hand: dict[str, str] = field(default_factory=dict)
    """Settings from the command line."""


def prepare_campaign(target: str, requested: FuzzOptions) -> PreparedCampaign:
    """Return the campaign of the options; reject a target that is not installed."""
    known = find_target(target)
    if requested.replay is not None and requested.known is not None:
        what = "compares campaigns, and --replay runs no campaign"
        cure = "leave out --known or --replay"
        raise InvalidInput.of("--known", what, cure=cure, code="option-conflict")
    missing = known.missing()
    if missing:
        raise InvalidInput.of(target, missing, code="scheduler-missing")
    settings = _settings(known, requested.settings)
    make = partial(make_scheduler, target, tuple(sorted(settings.items())))
    own = "" if requested.spec is None else read_text(requested.spec)
    options = _trial_options(known, requested)
    campaign = FuzzCampaign(
        target,
        make,
        _drawable_constraints(_constraints(known, requested, own), options, requested, own),
        options,
        requested.seed,
        requested.limits,
        own,
    )
    by_hand = dict(setting.split("=", 1) for setting in requested.settings)
    known_findings = _known_findings(known, settings, requested.known)
    return PreparedCampaign(known, settings, campaign, make, known_findings, by_hand)


def print_progress(report: CampaignReport) -> None:
    """Print the trials so far on standard error."""
    defects = format_count(report.defects, "defect")
    line = f"{report.tests:,} trials, {report.tests_per_s:,.0f} per second, {defects}"
    progress_console().print(line)


def find_target(name: str) -> SchedulerEntry:
    """Return the registry entry of a target."""
    entry = find_scheduler(name)
    if entry is None:
        like = " or ".join(similar_names(name))
        cure = f"did you mean {like}?" if like else "'equipoise fuzz --list' lists them"
        raise InvalidInput.of(name, "is no target", cure=cure, code="unknown-name")
    return entry


def _trial_options(known: SchedulerEntry, requested: FuzzOptions) -> TrialOptions:
    sizes = {"hosts": requested.hosts, "vms": requested.vms}
    options = known.options.but(**{name: size for name, size in sizes.items() if size is not None})
    return override_options(options, requested.changes)


def _constraints(known: SchedulerEntry, requested: FuzzOptions, own: str) -> tuple[str, ...]:
    """Return the requested constraints; default: those of --spec, or all of the target."""
    mine = tuple(custom_specification(own, str(requested.spec)).constraints)
    if requested.spec is not None and not mine:
        raise InvalidInput.of(
            str(requested.spec),
            "declares no constraint",
            cure="leave out --spec",
            code="empty-value",
        )
    selected = tuple(
        name if name in mine else _constraint_name(name) for name in requested.constraints
    )
    able = known.constraints or tuple(library_constraints())
    if not selected and not requested.groups:
        return mine or able
    grouped = [
        name for group in requested.groups for name in _constraints_of_group(group) if name in able
    ]
    constraints = tuple(dict.fromkeys((*selected, *grouped)))
    if not constraints:
        groups = ", ".join(requested.groups)
        what = f"{known.name} supports no constraint of {groups}"
        raise InvalidInput.of("--group", what, code="unsupported-constraint")
    return constraints


def _drawable_constraints(
    names: tuple[str, ...], options: TrialOptions, requested: FuzzOptions, own: str
) -> tuple[str, ...]:
    """Return the constraints with trials under the options; a named constraint must have some."""
    if requested.replay is not None:
        return names
    specifications, drawable = all_constraints(own), list[str]()
    is_named = bool(requested.constraints) or requested.spec is not None
    why: ImpossibleTrials | None = None
    for name in names:
        try:
            Generator(specifications[name], name, options, requested.seed).trial(0)
            drawable.append(name)
        except ImpossibleTrials as error:
            if is_named:
                raise
            why = why or error
    if why is not None:
        if not drawable:
            raise why
        omitted = ", ".join(name for name in names if name not in drawable)
        line = f"left out, because the options allow no trial of them: {omitted}"
        progress_console().print(line, soft_wrap=True)
    return tuple(drawable)


def _constraint_name(name: str) -> str:
    constraint = find_constraint(name)
    if constraint is None:
        raise unknown_constraint(name)
    return constraint


def _constraints_of_group(name: str) -> Sequence[str]:
    groups = library()
    if name not in groups:
        what = f"there is no group {name}"
        raise InvalidInput.of(
            "--group", what, cure=f"use one of {', '.join(groups)}", code="unknown-name"
        )
    return tuple(groups[name].constraints)


def _settings(known: SchedulerEntry, requested: Sequence[str]) -> dict[str, str]:
    """Return the requested settings, and the defaults of the others."""
    settings = {name: values[0] for name, values in known.settings.items()}
    for setting in requested:
        name, _, value = setting.partition("=")
        if value not in known.settings.get(name, ()):
            able = [
                f"{key}={choice}" for key, values in known.settings.items() for choice in values
            ]
            cure = ", ".join(able) or f"{known.name} has no settings"
            what = f"{setting!r} is no setting of {known.name}"
            raise InvalidInput.of("--with", what, cure=cure, code="unknown-name")
        settings[name] = value
    return settings


def _known_findings(
    known: SchedulerEntry, settings: dict[str, str], given: Path | None
) -> tuple[StoredTrial, ...] | None:
    path = given or known.findings
    if path is None:
        return None
    usual = {name: values[0] for name, values in known.settings.items()}
    lines = list(read_lines(read_bytes(path), str(path)))
    mine = [stored for stored in lines if stored.target == known.name]
    if given is not None and lines and not mine:
        others = ", ".join(dict.fromkeys(stored.target for stored in lines))
        what = f"has findings of {others} and none of {known.name}"
        raise InvalidInput.of(
            str(path), what, key="target", cure="name another file", code="findings-mismatch"
        )
    _check_version(known, mine, path)
    return tuple(stored for stored in mine if usual | dict(stored.settings) == settings)


def _check_version(known: SchedulerEntry, findings: Sequence[StoredTrial], path: Path) -> None:
    """Reject findings of another version of the target."""
    other = next((stored for stored in findings if not stored.is_of(known.version)), None)
    if other is not None:
        what = (
            f"has findings of {known.name} {other.target_version}, "
            f"but version {known.version} is installed"
        )
        cure = "use findings of the same version, or judge them again with --replay"
        raise InvalidInput.of(
            str(path), what, key="target_version", cure=cure, code="findings-mismatch"
        )
