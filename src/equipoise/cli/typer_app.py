"""The Typer classes of all commands, and the options that several commands share.

Help shows required arguments in capitals and values by their kind; Typer itself writes
``{inventory}`` and ``<list[str]>``.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any, Final, Optional

import typer
from typer.core import TyperArgument, TyperCommand, TyperOption

_METAVARS: Final = {"path": "PATH", "int": "N", "int range": "N", "float range": "SECONDS"}
"""The placeholder of a value, by Typer's name of its type; all other types are ``TEXT``."""

# Typer evaluates these annotations at run time.
Names = Optional[list[str]]  # noqa: UP045
OptionalPath = Optional[Path]  # noqa: UP045
OptionalText = Optional[str]  # noqa: UP045
OptionalInt = Optional[int]  # noqa: UP045
OptionalFloat = Optional[float]  # noqa: UP045

SEED_MAX: Final = 2**63 - 1

Json = Annotated[bool, typer.Option("--json", help="Print one JSON document and nothing else.")]
Inventory = Annotated[Path, typer.Argument(help="The cluster, in YAML or JSON.")]
Why = Annotated[Names, typer.Option("--why", help="Explain this VM or host, or 'all'; repeatable.")]
Seed = Annotated[int, typer.Option("--seed", min=0, max=SEED_MAX, help="Random seed.")]
OptionalSeed = Annotated[
    OptionalInt,
    typer.Option("--seed", min=0, max=SEED_MAX, help="Random seed; default: the file's."),
]
JournalUrl = Annotated[
    str, typer.Argument(help="A file, or a URL such as postgresql://user@host/database.")
]
NewJournal = Annotated[
    OptionalText, typer.Option("--journal", help="Write the journal to this file or database.")
]


class EquipoiseCommand(TyperCommand):
    """A command whose help follows the conventions of this command line."""

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        for parameter in self.params:
            if isinstance(parameter, TyperArgument):
                parameter.metavar = parameter.metavar or parameter.name.upper()

    def format_options(self, ctx: Any, formatter: Any) -> None:
        """Write the options, each with the kind of its value."""
        for parameter in self.params:
            if (
                isinstance(parameter, TyperOption)
                and not parameter.is_flag
                and parameter.metavar is None
            ):
                type_name = parameter.display_type(ctx).strip("<>")
                parameter.metavar = _METAVARS.get(type_name, "TEXT")
        super().format_options(ctx, formatter)

    def collect_usage_pieces(self, ctx: Any) -> list[str]:
        """Return the words of the usage line; required arguments have no brackets."""
        return [piece.strip("{}") for piece in super().collect_usage_pieces(ctx)]


class EquipoiseTyper(typer.Typer):
    """A Typer application whose commands are ``EquipoiseCommand``."""

    def command(
        self, name: str | None = None, *, cls: type[TyperCommand] | None = None, **options: Any
    ) -> Callable[[Any], Any]:
        """Return the decorator that adds a function as a command."""
        return super().command(name, cls=cls or EquipoiseCommand, **options)
