"""Every command with its arguments.

Commands import their work when they are called, so that ``equipoise --help`` stays instant.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Optional

import typer

from equipoise import __version__
from equipoise.cli.fuzzing.commands import fuzz_app
from equipoise.cli.house import House
from equipoise.cli.roles.commands import roles_app
from equipoise.cli.spec_commands import Json, spec_app
from equipoise.cli.upgrading.commands import upgrade

app = House(
    help="Keeps a virtualised cluster in balance, and proves every decision it makes.",
    no_args_is_help=True,
    rich_markup_mode=None,  # plain help: the pretty one takes longer to import than it is read
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)

Inventory = Annotated[Path, typer.Argument(help="The cluster, in YAML or JSON.")]
Why = Annotated[
    Optional[list[str]],  # noqa: UP045  (typer reads the annotation at run time)
    typer.Option("--why", help="Explain this VM or host, or 'all'; may be repeated."),
]
Seed = Annotated[
    int, typer.Option("--seed", min=0, max=2**63 - 1, help="Chance, where samples are drawn.")
]
JournalUrl = Annotated[
    str, typer.Argument(help="A file, or a URL such as postgresql://user@host/database.")
]


def _print_version(asked: bool) -> None:
    if asked:
        typer.echo(f"equipoise {__version__}")
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool,
        typer.Option(
            "--version", help="Print the version.", callback=_print_version, is_eager=True
        ),
    ] = False,
) -> None:
    assert not version, "its callback has left already"


@app.command()
def demo(
    out: Annotated[Path, typer.Option("--out", help="Where reports are written.")] = Path(
        "out/demo"
    ),
    json: Json = False,
) -> None:
    """Show in a minute what this is."""
    from equipoise.cli import demo as command

    raise typer.Exit(command.run(out, as_json=json))


@app.command()
def show(
    inventory: Inventory,
    vms: Annotated[bool, typer.Option("--vms", help="List the VMs as well.")] = False,
    json: Json = False,
) -> None:
    """Show a cluster: its hosts and how full they are."""
    from equipoise.cli import show as command

    raise typer.Exit(command.run(inventory, with_vms=vms, as_json=json))


@app.command()
def schema(
    kind: Annotated[
        str,
        typer.Argument(
            help="inventory, scenario, plan, case, amendment, problem or campaign.", metavar="KIND"
        ),
    ] = "inventory",
    json: Json = False,
) -> None:
    """Print the JSON Schema of our files, for your editor."""
    from equipoise.cli import schema as command

    raise typer.Exit(command.run(kind, as_json=json))


@app.command()
def check(
    plan: Annotated[Path, typer.Argument(help="The plan, in YAML or JSON.")],
    instance: Annotated[
        Path, typer.Option("--instance", help="The cluster or the problem it is made for.")
    ],
    json: Json = False,
) -> None:
    """Judge a plan against the cluster it is made for.

    Exit code 1 if some moment of it breaks what must hold.
    """
    from equipoise.cli import check as command

    raise typer.Exit(command.run(plan, instance, as_json=json))


@app.command()
def recommend(
    inventory: Inventory,
    why: Why = None,
    with_: Annotated[
        Optional[list[str]],  # noqa: UP045  (typer reads the annotation at run time)
        typer.Option("--with", help="Also ask this decider: power.", metavar="DECIDER"),
    ] = None,
    seed: Seed = 0,
    json: Json = False,
) -> None:
    """Say what one pass would do with a cluster, and why. Nothing is done.

    Exit code 1 if something is wrong that no move mends.
    """
    from equipoise.cli.advice import recommend as command

    questions = command.Questions(why=tuple(why or ()), seed=seed, deciders=tuple(with_ or ()))
    raise typer.Exit(command.run(inventory, questions, as_json=json))


@app.command()
def place(
    inventory: Inventory,
    vms: Annotated[Path, typer.Option("--vms", help="The VMs that are to start.")],
    json: Json = False,
) -> None:
    """Say where new VMs should start, one or many in one decision.

    Exit code 1 if some can start nowhere.
    """
    from equipoise.cli.advice import place as command

    raise typer.Exit(command.run(inventory, vms, as_json=json))


@app.command()
def whatif(
    inventory: Inventory,
    remove: Annotated[
        Optional[list[str]],  # noqa: UP045  (typer reads the annotation at run time)
        typer.Option("--remove", help="Empty this host and take it out; may be repeated."),
    ] = None,
    add: Annotated[
        Optional[Path],  # noqa: UP045
        typer.Option("--add", help="Hosts, VMs and rules that come, demand that changes."),
    ] = None,
    fail: Annotated[
        Optional[list[str]],  # noqa: UP045
        typer.Option("--fail", help="Let this host die; may be repeated."),
    ] = None,
    why: Why = None,
    json: Json = False,
) -> None:
    """Say what a pass would do if hosts were gone, lost or new.

    Demand and rules can be others, too.

    Exit code 1 if a VM would run nowhere, or something would stay wrong.
    """
    from equipoise.cli.advice import whatif as command

    wishes = command.Changes(
        remove=tuple(remove or ()), add=add, fail=tuple(fail or ()), why=tuple(why or ())
    )
    raise typer.Exit(command.run(inventory, wishes, as_json=json))


@app.command()
def solve(  # noqa: PLR0913, PLR0917  (typer has no other way to say what a command takes)
    instance: Annotated[
        Path, typer.Argument(help="A problem or a cluster, or BtrPlace's JSON; .gz too.")
    ],
    repair: Annotated[
        bool, typer.Option("--repair", help="Move only who may be misplaced, if that will do.")
    ] = False,
    optimise: Annotated[
        bool, typer.Option("--optimise", help="The best plan, not just a good one.")
    ] = False,
    time_limit: Annotated[
        Optional[float],  # noqa: UP045  (typer reads the annotation at run time)
        typer.Option("--time-limit", min=0.001, help="How many seconds to search at the most."),
    ] = None,
    output: Annotated[
        Optional[Path],  # noqa: UP045
        typer.Option("-o", "--output", help="Write the plan into this file: .yaml, .json, .gz."),
    ] = None,
    btrplace: Annotated[
        bool, typer.Option("--btrplace", help="Write it as BtrPlace's JSON.")
    ] = False,
    stream: Annotated[
        Optional[Path],  # noqa: UP045
        typer.Option("--stream", help="Append each better plan to this file, a line each."),
    ] = None,
    report: Annotated[
        Optional[Path],  # noqa: UP045
        typer.Option("--report", help="Write a page with the plan over time into this file."),
    ] = None,
    seed: Seed = 0,
    json: Json = False,
) -> None:
    """Find a proved plan to what is wished, or say why not.

    Exit code 1 if there is none, or none was found.
    """
    from equipoise.cli.planning import solve as command

    wishes = command.Wishes(
        repair=repair,
        optimise=optimise,
        time_limit_s=time_limit,
        seed=seed,
        output=output,
        as_btrplace=btrplace,
        stream=stream,
        report=report,
    )
    raise typer.Exit(command.run(instance, wishes, as_json=json))


@app.command()
def scenarios(json: Json = False) -> None:
    """List the built-in scenarios."""
    from equipoise.cli import scenarios as command

    raise typer.Exit(command.run(as_json=json))


@app.command()
def simulate(  # noqa: PLR0913, PLR0917  (typer has no other way to say what a command takes)
    scenario: Annotated[str, typer.Argument(help="A file, or the name of a built-in scenario.")],
    journal: Annotated[
        Optional[str],  # noqa: UP045  (typer reads the annotation at run time)
        typer.Option("--journal", help="Keep the journal in this file or database."),
    ] = None,
    with_: Annotated[
        Optional[list[str]],  # noqa: UP045
        typer.Option("--with", help="Let this decider take part; may be repeated."),
    ] = None,
    without: Annotated[
        Optional[list[str]],  # noqa: UP045
        typer.Option("--without", help="Leave this decider out; may be repeated."),
    ] = None,
    set_: Annotated[
        Optional[list[str]],  # noqa: UP045
        typer.Option(
            "--set", help="Change a figure, as cluster.power.threshold=4.", metavar="KEY=VALUE"
        ),
    ] = None,
    seed: Annotated[
        Optional[int],  # noqa: UP045
        typer.Option("--seed", min=0, max=2**63 - 1, help="Other chance than the scenario's."),
    ] = None,
    out: Annotated[
        Optional[Path],  # noqa: UP045
        typer.Option("--out", help="Write journal, series and a report into this folder."),
    ] = None,
    pace: Annotated[
        Optional[float],  # noqa: UP045
        typer.Option(
            "--pace",
            min=0.001,
            metavar="N",
            help="Virtual seconds per real one, as 60; else as fast as it goes.",
        ),
    ] = None,
    json: Json = False,
) -> None:
    """Run a scenario in virtual time."""
    from equipoise.cli import simulate as command

    wishes = command.Wishes(
        seed=seed,
        changes=tuple(set_ or ()),
        with_deciders=tuple(with_ or ()),
        without_deciders=tuple(without or ()),
        pace=pace,
        journal_url=journal,
        out=out,
    )
    raise typer.Exit(command.run(scenario, wishes, as_json=json))


@app.command()
def report(
    run_a: Annotated[Path, typer.Argument(help="A folder that 'simulate --out' wrote.")],
    run_b: Annotated[Path, typer.Argument(help="Another one.")],
    out: Annotated[
        Optional[Path],  # noqa: UP045
        typer.Option("--out", help="Write a page with both side by side into this file."),
    ] = None,
    json: Json = False,
) -> None:
    """Compare two runs, measure by measure."""
    from equipoise.cli import report as command

    raise typer.Exit(command.run(run_a, run_b, out=out, as_json=json))


@app.command()
def journal(
    url: JournalUrl,
    kind: Annotated[
        Optional[list[str]],  # noqa: UP045
        typer.Option("--kind", help="Only events of this kind; may be repeated."),
    ] = None,
    lines: Annotated[bool, typer.Option("--lines", help="The raw JSON lines.")] = False,
    json: Json = False,
) -> None:
    """Tell what a journal says, event by event."""
    from equipoise.cli import journal as command

    raise typer.Exit(command.run(url, kinds=kind or [], as_lines=lines, as_json=json))


@app.command()
def replay(
    url: JournalUrl,
    json: Json = False,
) -> None:
    """Print the cluster that a journal leads to."""
    from equipoise.cli import replay as command

    raise typer.Exit(command.run(url, as_json=json))


@app.command()
def wake(
    access: Annotated[Path, typer.Argument(help="How the hosts are reached, in YAML or JSON.")],
    hosts: Annotated[
        Optional[list[str]],  # noqa: UP045  (typer reads the annotation at run time)
        typer.Argument(help="Which of them; all without it.", metavar="HOST"),
    ] = None,
    state: Annotated[bool, typer.Option("--state", help="Only look whether they are on.")] = False,
    sleep: Annotated[bool, typer.Option("--sleep", help="Let them shut down instead.")] = False,
    timeout: Annotated[
        float, typer.Option("--timeout", min=1, help="How many seconds to wait for each.")
    ] = 600,
    json: Json = False,
) -> None:
    """Wake real hosts, and wait until they are on.

    Exit code 3 if one of them is not.
    """
    from equipoise.cli.hosts import wake as command

    task = command.task_of(state=state, sleep=sleep)
    wishes = command.Wishes(hosts=tuple(hosts or ()), task=task, timeout_s=timeout)
    raise typer.Exit(command.run(access, wishes, as_json=json))


app.add_typer(spec_app, name="spec")
app.add_typer(roles_app, name="roles")
app.add_typer(
    fuzz_app, name="fuzz", help="Find where a scheduler disagrees with its specification."
)
app.command()(upgrade)


@app.command()
def bench(
    name: Annotated[
        Optional[str],  # noqa: UP045
        typer.Argument(
            help="model, gate, spec, fuzz, journal, files, sim, balance, power, plan, roles, "
            "upgrade."
        ),
    ] = None,
    json: Json = False,
) -> None:
    """Measure how fast it is, as ratios within one run."""
    from equipoise.cli.bench import run as command

    raise typer.Exit(command.run(name, as_json=json))
