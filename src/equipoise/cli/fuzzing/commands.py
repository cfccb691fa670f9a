"""The commands ``fuzz`` and ``fuzz experiment``, with their arguments."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, Optional

import typer
from typer.core import TyperGroup

from equipoise.cli.house import Command, House
from equipoise.cli.spec_commands import Json

CAMPAIGN = "TARGET"
"""What a campaign is called inside: nobody has to say it."""


class CampaignUnlessNamed(TyperGroup):
    """Takes its first word for a command if it is one, and else everything for a campaign."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Put in what goes without saying."""
        is_named = bool(args) and args[0] in self.commands
        return super().parse_args(ctx, args if is_named else [CAMPAIGN, *args])


class CampaignCommand(Command):
    """A campaign, which nobody calls by its name."""

    def collect_usage_pieces(self, ctx: Any) -> list[str]:
        """The name that it has inside stands for the target already."""
        return [one for one in super().collect_usage_pieces(ctx) if CAMPAIGN not in one]


fuzz_app = House(cls=CampaignUnlessNamed)

SIZE_MAX = 1_000
"""How many hosts or VMs a trial may have."""

Save = Annotated[
    Optional[Path],  # noqa: UP045  (typer reads the annotation at run time)
    typer.Option("--save", help="Write the shrunk cases here, a line of JSON each."),
]
Replay = Annotated[
    Optional[Path],  # noqa: UP045
    typer.Option("--replay", help="Judge the cases of such a file again."),
]
Constraints = Annotated[
    Optional[list[str]],  # noqa: UP045
    typer.Option("--constraint", metavar="NAME", help="Only this constraint; may be repeated."),
]
Groups = Annotated[
    Optional[list[str]],  # noqa: UP045
    typer.Option(
        "--group", metavar="NAME", help="Only those of this file of the library, such as nova."
    ),
]
Tests = Annotated[
    Optional[int],  # noqa: UP045
    typer.Option(
        "--tests", min=0, help="How many trials; 1000, unless --seconds says when to stop."
    ),
]
Failures = Annotated[
    Optional[int],  # noqa: UP045
    typer.Option("--failures", min=1, help="Stop after so many defects."),
]
Seconds = Annotated[
    Optional[float],  # noqa: UP045
    typer.Option("--seconds", min=0, help="Stop after so many seconds."),
]
Seed = Annotated[int, typer.Option("--seed", min=0, max=2**63 - 1, help="It decides everything.")]
List = Annotated[
    bool, typer.Option("--list", help="List the schedulers that can be put to the test.")
]
Spec = Annotated[
    Optional[Path],  # noqa: UP045
    typer.Option("--spec", help="A file with constraints of your own, to be tried instead."),
]
Hosts = Annotated[
    Optional[str],  # noqa: UP045
    typer.Option("--hosts", metavar="A-B", help="How many, such as 3 or 1-4; else as it suits."),
]
Vms = Annotated[
    Optional[str],  # noqa: UP045
    typer.Option("--vms", metavar="A-B", help="How many, such as 4 or 0-5; else as it suits."),
]
Changes = Annotated[
    Optional[list[str]],  # noqa: UP045
    typer.Option(
        "--set",
        metavar="KEY=VALUE",
        help="What trials are like, such as 'actions=[0,1]'; repeatable.",
    ),
]
Workers = Annotated[
    str,
    typer.Option(
        "--workers", metavar="N", help="How many processes, or where Dask is: tcp://HOST:PORT."
    ),
]
Settings = Annotated[
    Optional[list[str]],  # noqa: UP045
    typer.Option(
        "--with", metavar="KEY=VALUE", help="A setting of the target, as repair=on; repeatable."
    ),
]
Findings = Annotated[
    Optional[Path],  # noqa: UP045
    typer.Option("--known", help="What was saved earlier: only what is new or gone counts."),
]
Page = Annotated[
    Optional[Path],  # noqa: UP045
    typer.Option("--report", help="Write a page with a picture of each finding."),
]
Table = Annotated[
    Optional[Path],  # noqa: UP045
    typer.Option("--csv", help="Write a table with a row for each finding."),
]
Junit = Annotated[
    Optional[Path],  # noqa: UP045
    typer.Option("--junit", help="Write JUnit XML, as build servers read it."),
]


@fuzz_app.command(CAMPAIGN, cls=CampaignCommand)
def fuzz(  # noqa: PLR0913, PLR0917
    target: Annotated[
        Optional[str],  # noqa: UP045  (typer reads the annotation at run time)
        typer.Argument(help="The scheduler that is put to the test; --list lists them."),
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
    changes: Changes = None,
    workers: Workers = "1",
    settings: Settings = None,
    known: Findings = None,
    save: Save = None,
    replay: Replay = None,
    report: Page = None,
    csv: Table = None,
    junit: Junit = None,
    list_targets: List = False,
    json: Json = False,
) -> None:
    """Find where a scheduler disagrees with its specification.

    Each finding is told by the smallest case. Exit code 1 if there is one; of a target of which
    findings are known, if one is new or one has gone. 'equipoise fuzz experiment --help' tells of
    experiments.
    """
    from equipoise.cli.fuzzing import fuzz as command
    from equipoise.cli.fuzzing.files import Files
    from equipoise.cli.fuzzing.wishes import Wishes
    from equipoise.fuzz.campaign import Limits

    if list_targets:
        raise typer.Exit(command.run_list(as_json=json))
    if target is None:
        raise typer.BadParameter("name a target; --list lists them", param_hint="TARGET")
    if tests is None and seconds is None:
        tests = 1000
    wishes = Wishes(
        constraints=tuple(constraint or ()),
        limits=Limits(tests, failures, seconds),
        seed=seed,
        groups=tuple(group or ()),
        spec=spec,
        settings=tuple(settings or ()),
        hosts=_span(hosts, "--hosts"),
        vms=_span(vms, "--vms"),
        changes=tuple(changes or ()),
        workers=workers,
        known=known,
        save=save,
        replay=replay,
        files=Files(page=report, csv=csv, junit=junit),
    )
    raise typer.Exit(command.run(target, wishes, as_json=json))


@fuzz_app.command("experiment")
def experiment(  # noqa: PLR0913, PLR0917
    name: Annotated[
        Optional[str],  # noqa: UP045  (typer reads the annotation at run time)
        typer.Argument(help="Which one; without a name they are listed.", metavar="NAME"),
    ] = None,
    tests: Annotated[int, typer.Option("--tests", min=1, help="How many trials.")] = 2000,
    seed: Seed = 0,
    target: Annotated[
        str, typer.Option("--target", help="The scheduler; 'equipoise fuzz --list' lists them.")
    ] = "btrplace",
    hosts: Hosts = None,
    vms: Vms = None,
    json: Json = False,
) -> None:
    """Measure again what the SafePlace paper has measured, with all arms on the same trials."""
    from equipoise.cli.fuzzing import experiment as command

    if name is None:
        raise typer.Exit(command.run_list(as_json=json))
    spans = {"hosts": _span(hosts, "--hosts"), "vms": _span(vms, "--vms")}
    sizes = {key: span for key, span in spans.items() if span is not None}
    asked = command.Asked(target, tests, seed, sizes)
    raise typer.Exit(command.run(name, asked, as_json=json))


def _span(text: str | None, option: str) -> tuple[int, int] | None:
    """A number, or two with a hyphen between them."""
    if text is None:
        return None
    least, dash, most = text.partition("-")
    try:
        found = int(least), int(most if dash else least)
    except ValueError:
        found = (1, 0)
    if not 0 <= found[0] <= found[1]:
        raise typer.BadParameter(f"{text} is no number and no range such as 1-3", param_hint=option)
    if found[1] > SIZE_MAX:
        raise typer.BadParameter(f"{text} is more than {SIZE_MAX:,}", param_hint=option)
    return found
