"""The door: calls a command, and says what each exit code means."""

from __future__ import annotations

import io
import os
import sys
import traceback
from typing import NoReturn

import typer

from equipoise.cli.commands import app
from equipoise.errors import (
    Bug,
    EquipoiseError,
    Interrupted,
    InvalidInput,
    MissingExtra,
    WorldError,
)

FINE, REFUSED, BAD_INPUT, WORLD_FAILED, INTERRUPTED, BUG = 0, 1, 2, 3, 130, 70


def main() -> NoReturn:
    """Run the command line and leave with its exit code."""
    sys.exit(_main())


def _main() -> int:
    as_json = "--json" in sys.argv[1:]
    _prepare_output()
    try:
        code = _called()
        sys.stdout.flush()
    except typer.TyperException as error:  # a wrong option or a missing argument
        return _apologise(BAD_INPUT, "usage", _usage(error), as_json=as_json)
    except (InvalidInput, MissingExtra, WorldError, Bug) as error:
        return _apologise(*_meaning(error), error, as_json=as_json)
    except Interrupted:  # the answer is printed, in JSON as well if that was asked
        sys.stdout.flush()
        sys.stderr.write("interrupted\n")
        return INTERRUPTED
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


def _called() -> object:
    """Call the command; the parser makes an exit code of an interrupt, of which people are told."""
    code = app(standalone_mode=False)
    if code == INTERRUPTED:
        raise KeyboardInterrupt
    return code


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


def _meaning(error: EquipoiseError) -> tuple[int, str]:
    """The exit code of something that went wrong, and what it is called."""
    match error:
        case WorldError():
            return WORLD_FAILED, "the world failed"
        case Bug():
            return BUG, "bug"
    return BAD_INPUT, "bad input"


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
