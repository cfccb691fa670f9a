"""The arguments of ``equipoise fuzz`` and ``equipoise fuzz experiment``."""

from __future__ import annotations

from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from equipoise.cli.typer_app import (
    EquipoiseCommand,
    EquipoiseTyper,
    Json,
    Names,
    OptionalFloat,
    OptionalInt,
    OptionalPath,
    OptionalText,
    Seed,
)

DEFAULT_COMMAND = "TARGET"
"""The internal name of the campaign command; a command line never contains it."""


class DefaultCampaignGroup(TyperGroup):
    """Runs the command that the first word names; other words are arguments of a campaign."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Insert the internal command name where the first word is no command."""
        is_named = bool(args) and args[0] in self.commands
        return super().parse_args(ctx, args if is_named else [DEFAULT_COMMAND, *args])


class CampaignCommand(EquipoiseCommand):
    """The campaign command, whose internal name help does not show."""

    def collect_usage_pieces(self, ctx: Any) -> list[str]:
        """Return the words of the usage line; the internal name stands for the target."""
        return [
            piece for piece in super().collect_usage_pieces(ctx) if DEFAULT_COMMAND not in piece
        ]


fuzz_app = EquipoiseTyper(cls=DefaultCampaignGroup)


def add_to(app: EquipoiseTyper) -> None:
    """Add the commands of this group."""
    text = "Find where a scheduler disagrees with its specification."
    app.add_typer(fuzz_app, name="fuzz", help=text)


SIZE_MAX = 1_000
"""Largest number of hosts or of VMs in a trial."""

SaveFile = Annotated[
    OptionalPath,
    typer.Option("--save", help="Write the shrunk cases to this file, one JSON line each."),
]
ReplayFile = Annotated[
    OptionalPath,
    typer.Option("--replay", help="Judge the cases of a saved file again."),
]
Constraints = Annotated[
    Names,
    typer.Option("--constraint", metavar="NAME", help="Only this constraint; repeatable."),
]
Groups = Annotated[
    Names,
    typer.Option(
        "--group", metavar="NAME", help="Only constraints of this library file, such as nova."
    ),
]
Tests = Annotated[
    OptionalInt,
    typer.Option(
        "--tests", min=0, help="Number of trials; default: 1000, or no limit with --seconds."
    ),
]
Failures = Annotated[
    OptionalInt,
    typer.Option("--failures", min=1, help="Stop after N defects."),
]
Seconds = Annotated[
    OptionalFloat,
    typer.Option("--seconds", min=0, help="Stop after this time."),
]
ListTargets = Annotated[
    bool, typer.Option("--list", help="List the schedulers that can be tested.")
]
Spec = Annotated[
    OptionalPath,
    typer.Option("--spec", help="A file with your constraints, used instead of the library."),
]
Hosts = Annotated[
    OptionalText,
    typer.Option(
        "--hosts", metavar="A-B", help="Hosts per trial, such as 3 or 1-4; default: by target."
    ),
]
Vms = Annotated[
    OptionalText,
    typer.Option(
        "--vms", metavar="A-B", help="VMs per trial, such as 4 or 0-5; default: by target."
    ),
]
TrialChanges = Annotated[
    Names,
    typer.Option(
        "--set",
        metavar="KEY=VALUE",
        help="Change how trials are generated, such as 'actions=[0,1]'; repeatable.",
    ),
]
Workers = Annotated[
    str,
    typer.Option(
        "--workers", metavar="N", help="Number of processes, or a Dask address: tcp://HOST:PORT."
    ),
]
Settings = Annotated[
    Names,
    typer.Option(
        "--with",
        metavar="KEY=VALUE",
        help="A setting of the target, such as repair=on; repeatable.",
    ),
]
KnownFindings = Annotated[
    OptionalPath,
    typer.Option("--known", help="A saved file of known defects; only new and missing ones count."),
]
ReportFile = Annotated[
    OptionalPath,
    typer.Option("--report", help="Write a page with a timeline of each defect."),
]
CsvFile = Annotated[
    OptionalPath,
    typer.Option("--csv", help="Write a table with one row per defect."),
]
JunitFile = Annotated[
    OptionalPath,
    typer.Option("--junit", help="Write JUnit XML for build servers."),
]


@fuzz_app.command(DEFAULT_COMMAND, cls=CampaignCommand)
def fuzz(  # noqa: PLR0913, PLR0917
    target: Annotated[
        OptionalText,
        typer.Argument(help="The scheduler to test; --list lists them."),
    ] = None,
    constraint: Constraints = None,
    group: Groups = None,
    spec: Spec = None,
    tests: Tests = None,
    failures: Failures = None,
    seconds: Seconds = None,
    seed: Seed = 0,
    hosts: Hosts = None,
    vms: Vms = None,
    changes: TrialChanges = None,
    workers: Workers = "1",
    settings: Settings = None,
    known: KnownFindings = None,
    save: SaveFile = None,
    replay: ReplayFile = None,
    report: ReportFile = None,
    csv: CsvFile = None,
    junit: JunitFile = None,
    list_targets: ListTargets = False,
    json: Json = False,
) -> None:
    """Find where a scheduler disagrees with its specification.

    Each defect is reported with its smallest case. Exit code 1 if a defect is found; for a target
    with known defects, if one is new or missing. See also 'equipoise fuzz experiment --help'.
    """
    from equipoise.cli.fuzz import campaign as command
    from equipoise.cli.fuzz.options import FuzzOptions, ReportFiles
    from equipoise.fuzz.campaign import CampaignLimits

    if list_targets:
        raise typer.Exit(command.run_list(as_json=json))
    if target is None:
        raise typer.BadParameter("name a target; --list lists them", param_hint="TARGET")
    if tests is None and seconds is None:
        tests = 1000
    options = FuzzOptions(
        constraints=tuple(constraint or ()),
        limits=CampaignLimits(tests, failures, seconds),
        seed=seed,
        groups=tuple(group or ()),
        spec=spec,
        settings=tuple(settings or ()),
        hosts=_parse_range(hosts, "--hosts"),
        vms=_parse_range(vms, "--vms"),
        changes=tuple(changes or ()),
        workers=workers,
        known=known,
        save=save,
        replay=replay,
        files=ReportFiles(page=report, csv=csv, junit=junit),
    )
    raise typer.Exit(command.run(target, options, as_json=json))


@fuzz_app.command("experiment")
def experiment(  # noqa: PLR0913, PLR0917
    name: Annotated[
        OptionalText,
        typer.Argument(help="An experiment; default: list them.", metavar="NAME"),
    ] = None,
    tests: Annotated[int, typer.Option("--tests", min=1, help="Number of trials.")] = 2000,
    seed: Seed = 0,
    target: Annotated[
        str, typer.Option("--target", help="The scheduler; 'equipoise fuzz --list' lists them.")
    ] = "btrplace",
    hosts: Hosts = None,
    vms: Vms = None,
    json: Json = False,
) -> None:
    """Repeat an experiment of the SafePlace paper; all variants use the same trials."""
    from equipoise.cli.fuzz import experiment as command

    if name is None:
        raise typer.Exit(command.run_list(as_json=json))
    spans = {"hosts": _parse_range(hosts, "--hosts"), "vms": _parse_range(vms, "--vms")}
    sizes = {key: span for key, span in spans.items() if span is not None}
    code = command.run(name, target=target, tests=tests, seed=seed, sizes=sizes, as_json=json)
    raise typer.Exit(code)


def _parse_range(text: str | None, option: str) -> tuple[int, int] | None:
    """Return the bounds of ``3`` or of ``1-4``."""
    if text is None:
        return None
    least, dash, most = text.partition("-")
    try:
        bounds = int(least), int(most if dash else least)
    except ValueError:
        bounds = (1, 0)
    if not 0 <= bounds[0] <= bounds[1]:
        raise typer.BadParameter(
            f"{text} is neither a number nor a range such as 1-3", param_hint=option
        )
    if bounds[1] > SIZE_MAX:
        raise typer.BadParameter(f"{text} is more than {SIZE_MAX:,}", param_hint=option)
    return bounds
