"""The door: every command with its arguments, and what each exit code means.

Commands import their work when they are called, so that ``equipoise --help`` stays instant.
"""

from __future__ import annotations

import io
import os
import sys
import traceback
from pathlib import Path
from typing import Annotated, NoReturn, Optional

import typer

from equipoise import __version__
from equipoise.errors import EquipoiseError, InvalidInput, MissingExtra, WorldError

FINE, REFUSED, BAD_INPUT, WORLD_FAILED, INTERRUPTED, BUG = 0, 1, 2, 3, 130, 70

app = typer.Typer(
    help="Keeps a virtualised cluster in balance, and proves every decision it makes.",
    no_args_is_help=True,
    rich_markup_mode=None,  # plain help: the pretty one takes longer to import than it is read
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)

Json = Annotated[bool, typer.Option("--json", help="Print one JSON document and nothing else.")]
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
def demo(json: Json = False) -> None:
    """Show in a minute what this is."""
    from equipoise.cli import demo as command

    raise typer.Exit(command.run(as_json=json))


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
        str, typer.Argument(help="inventory, scenario or plan.", metavar="KIND")
    ] = "inventory",
    json: Json = False,
) -> None:
    """Print the JSON Schema of our files, for your editor."""
    from equipoise.cli import schema as command

    raise typer.Exit(command.run(kind, as_json=json))


@app.command()
def check(
    plan: Annotated[Path, typer.Argument(help="The plan, in YAML or JSON.")],
    instance: Annotated[Path, typer.Option("--instance", help="The cluster it is made for.")],
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
    seed: Seed = 0,
    json: Json = False,
) -> None:
    """Say what one pass would do with a cluster, and why. Nothing is done.

    Exit code 1 if something is wrong that no move mends.
    """
    from equipoise.cli import recommend as command

    questions = command.Questions(why=tuple(why or ()), seed=seed)
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
    from equipoise.cli import place as command

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
    """Say what a pass would do if hosts were gone, lost or new, or demand and rules were others.

    Exit code 1 if a VM would run nowhere, or something would stay wrong.
    """
    from equipoise.cli import whatif as command

    wishes = command.Wishes(
        remove=tuple(remove or ()), add=add, fail=tuple(fail or ()), why=tuple(why or ())
    )
    raise typer.Exit(command.run(inventory, wishes, as_json=json))


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
            "--pace", min=0.001, help="Virtual seconds per real one: 1, 60 ... As fast as it goes."
        ),
    ] = None,
    json: Json = False,
) -> None:
    """Run a scenario in virtual time."""
    from equipoise.cli import simulate as command

    wishes = command.Wishes(
        seed=seed,
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


spec_app = typer.Typer(help="The specification language.", no_args_is_help=True)
app.add_typer(spec_app, name="spec")


@spec_app.command("check")
def spec_check(
    file: Annotated[Path, typer.Argument(help="A file of constraints, ending in .spec.")],
    json: Json = False,
) -> None:
    """Check a specification file: its form and its types."""
    from equipoise.cli import spec as command

    raise typer.Exit(command.run_check(file, as_json=json))


@spec_app.command("list")
def spec_list(json: Json = False) -> None:
    """List the constraints of the library."""
    from equipoise.cli import spec as command

    raise typer.Exit(command.run_list(as_json=json))


@spec_app.command("show")
def spec_show(
    name: Annotated[str, typer.Argument(help="A constraint of the library.")], json: Json = False
) -> None:
    """Show a constraint of the library as it is written."""
    from equipoise.cli import spec as command

    raise typer.Exit(command.run_show(name, as_json=json))


@spec_app.command("judge")
def spec_judge(
    name: Annotated[str, typer.Argument(help="A constraint.")],
    case: Annotated[Path, typer.Option(help="The case: a cluster, a plan and arguments.")],
    spec: Annotated[
        Optional[Path],  # noqa: UP045
        typer.Option(help="A file that declares the constraint, if the library does not."),
    ] = None,
    json: Json = False,
) -> None:
    """Judge a case by a constraint, and say where and why it is broken."""
    from equipoise.cli import spec as command

    raise typer.Exit(command.run_judge(name, case, spec, as_json=json))


@spec_app.command("functions")
def spec_functions(json: Json = False) -> None:
    """List the functions that a formula may call."""
    from equipoise.cli import spec as command

    raise typer.Exit(command.run_functions(as_json=json))


@app.command()
def bench(
    name: Annotated[
        Optional[str],  # noqa: UP045
        typer.Argument(help="model, gate, spec, journal or files; all of them without it."),
    ] = None,
    json: Json = False,
) -> None:
    """Measure how fast it is, as ratios within one run."""
    from equipoise.cli.bench import run as command

    raise typer.Exit(command.run(name, as_json=json))


def main() -> NoReturn:
    """Run the command line and leave with its exit code."""
    sys.exit(_main())


def _main() -> int:
    as_json = "--json" in sys.argv[1:]
    _prepare_output()
    try:
        code = app(standalone_mode=False)
        sys.stdout.flush()
    except typer.TyperException as error:  # a wrong option or a missing argument
        return _apologise(BAD_INPUT, "usage", _usage(error), as_json=as_json)
    except (InvalidInput, MissingExtra) as error:
        return _apologise(BAD_INPUT, "bad input", error, as_json=as_json)
    except WorldError as error:
        return _apologise(WORLD_FAILED, "the world failed", error, as_json=as_json)
    except (KeyboardInterrupt, typer.Abort):
        return _apologise(INTERRUPTED, "interrupted", "interrupted", as_json=as_json)
    except BrokenPipeError:
        return _stop_printing()
    except SystemExit as error:  # the parser leaves like this, also when a pipe is broken
        broken = isinstance(error.__context__, OSError)
        return _stop_printing() if broken else int(error.code or FINE)
    except OSError as error:  # files that are read or kept have been taken care of elsewhere
        _stop_printing()
        sys.stderr.write(f"cannot print: {error.strerror or error}\n")
        return WORLD_FAILED
    except Exception as error:  # the one place where everything is caught
        traceback.print_exc()
        text = f"this is a bug in Equipoise ({type(error).__name__}); please report it"
        return _apologise(BUG, "bug", text, as_json=as_json)
    return code if isinstance(code, int) else FINE


def _prepare_output() -> None:
    """See to it that printing works wherever it goes: closed, or without our characters."""
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name)
        if stream is None:
            setattr(sys, name, open(os.devnull, "w", encoding="utf-8"))  # noqa: SIM115
        elif isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")


def _stop_printing() -> int:
    """The reader, such as head, has seen enough: that is no error of ours."""
    sys.stdout = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115
    return FINE


def _usage(error: typer.TyperException) -> str:
    said = error.format_message()
    return said if said.startswith("Usage:") else f"{said} See 'equipoise --help'."


def _apologise(code: int, kind: str, error: EquipoiseError | str, *, as_json: bool) -> int:
    """Say on standard error what went wrong, and in JSON on standard output if that was asked."""
    sys.stderr.write(f"{error}\n")
    if as_json:
        try:
            _apologise_in_json(kind, error)
            sys.stdout.flush()
        except OSError:  # nobody listens; the exit code still says it
            _stop_printing()
    return code


def _apologise_in_json(kind: str, error: EquipoiseError | str) -> None:
    from equipoise.cli.answer import print_json

    problems = error.problems if isinstance(error, InvalidInput) else ()
    source = error.source if isinstance(error, InvalidInput) else None
    print_json(
        {
            "error": kind,
            "message": str(error),
            "problems": [
                {
                    "file": source,
                    "line": p.line,
                    "column": p.column,
                    "key": p.key,
                    "what": p.what,
                    "cure": p.cure,
                }
                for p in problems
            ],
        }
    )
