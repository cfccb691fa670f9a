"""How commands show their help: what must be given in capitals, and values by what they are.

The parser by itself writes ``{inventory}`` and ``<list[str]>``, which nobody types.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import typer
from typer.core import TyperArgument, TyperCommand, TyperOption

_VALUES: Final = {"path": "PATH", "int": "N", "int range": "N", "float range": "SECONDS"}
"""What a value is, by the parser's name of its type; everything else is text."""


class Command(TyperCommand):
    """A command of ours."""

    def __init__(self, *given: Any, **named: Any) -> None:
        super().__init__(*given, **named)
        for one in self.params:
            if isinstance(one, TyperArgument):
                one.metavar = one.metavar or one.name.upper()

    def format_options(self, ctx: Any, formatter: Any) -> None:
        """Say of each option what its value is."""
        for one in self.params:
            if isinstance(one, TyperOption) and not one.is_flag and one.metavar is None:
                one.metavar = _VALUES.get(one.display_type(ctx).strip("<>"), "TEXT")
        super().format_options(ctx, formatter)

    def collect_usage_pieces(self, ctx: Any) -> list[str]:
        """What must be given stands without brackets."""
        return [one.strip("{}") for one in super().collect_usage_pieces(ctx)]


class House(typer.Typer):
    """Commands of ours."""

    def command(
        self, name: str | None = None, *, cls: type[TyperCommand] | None = None, **named: Any
    ) -> Callable[[Any], Any]:
        """Add a command that shows its help as all of ours do."""
        return super().command(name, cls=cls or Command, **named)
