"""The entry point of the command line: calls a command and turns errors into exit codes."""

from __future__ import annotations

import io
import os
import sys
import traceback
from typing import NoReturn

import typer

from equipoise.cli.commands import app
from equipoise.cli.output import (
    EXIT_BAD_INPUT,
    EXIT_BUG,
    EXIT_INTERRUPTED,
    EXIT_OK,
    EXIT_WORLD_FAILED,
    print_document,
)
from equipoise.errors import (
    EquipoiseError,
    InternalError,
    Interrupted,
    InvalidInput,
    MissingExtra,
    WorldError,
)


def main() -> NoReturn:
    """Run the command line and exit with its exit code."""
    sys.exit(_main())


def _main() -> int:
    as_json = "--json" in sys.argv[1:]
    _prepare_output()
    try:
        code = _run_app()
        sys.stdout.flush()
    except typer.TyperException as error:  # a wrong option or a missing argument
        return _report_error(EXIT_BAD_INPUT, "usage", _usage_text(error), as_json=as_json)
    except (InvalidInput, MissingExtra, WorldError, InternalError) as error:
        return _report_error(*_exit_code_of(error), error, as_json=as_json)
    except Interrupted:  # the result is printed already
        sys.stdout.flush()
        sys.stderr.write("interrupted\n")
        return EXIT_INTERRUPTED
    except (KeyboardInterrupt, typer.Abort):
        return _report_error(EXIT_INTERRUPTED, "interrupted", "interrupted", as_json=as_json)
    except BrokenPipeError:
        return _stop_printing()
    except SystemExit as error:  # the parser exits like this, also after a broken pipe
        broken = isinstance(error.__context__, OSError)
        return _stop_printing() if broken else int(error.code or EXIT_OK)
    except (
        OSError
    ) as error:  # errors of named files are InvalidInput already, so this is standard output
        _stop_printing()
        sys.stderr.write(f"cannot write to standard output: {error.strerror or error}\n")
        return EXIT_WORLD_FAILED
    except Exception as error:  # the last resort: a bug
        traceback.print_exc()
        text = f"this is a bug in Equipoise ({type(error).__name__}); please report it"
        return _report_error(EXIT_BUG, "bug", text, as_json=as_json)
    return code if isinstance(code, int) else EXIT_OK


def _run_app() -> object:
    """Call the command; raise ``KeyboardInterrupt`` where the parser returns its exit code."""
    code = app(standalone_mode=False)
    if code == EXIT_INTERRUPTED:
        raise KeyboardInterrupt
    return code


def _prepare_output() -> None:
    """Make printing safe: into a closed stream, and in an encoding without our characters."""
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name)
        if stream is None:
            setattr(sys, name, open(os.devnull, "w", encoding="utf-8"))  # noqa: SIM115
        elif isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")


def _stop_printing() -> int:
    """Drop further output: the reader, such as ``head``, closed the pipe, which is no error."""
    sys.stdout = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115
    return EXIT_OK


def _exit_code_of(error: EquipoiseError) -> tuple[int, str]:
    """Return the exit code of an error and its kind."""
    match error:
        case WorldError():
            return EXIT_WORLD_FAILED, "the world failed"
        case InternalError():
            return EXIT_BUG, "bug"
    return EXIT_BAD_INPUT, "bad input"


def _usage_text(error: typer.TyperException) -> str:
    message = error.format_message()
    return message if message.startswith("Usage:") else f"{message} See 'equipoise --help'."


def _report_error(code: int, kind: str, error: EquipoiseError | str, *, as_json: bool) -> int:
    """Print the error on standard error, and with ``--json`` as a document on standard output."""
    sys.stderr.write(f"{error}\n")
    if as_json:
        from equipoise.documents.json_document import error_document

        try:
            print_document(error_document(kind, error))
            sys.stdout.flush()
        except OSError:  # the pipe is closed; the exit code still reports the error
            _stop_printing()
    return code
