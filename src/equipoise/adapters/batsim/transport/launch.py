"""Runs a simulation with a scheduler that listens already, or that is started for the run."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from equipoise.adapters.batsim.protocol.codec import Codec
from equipoise.adapters.batsim.protocol.setup import BatsimInputs
from equipoise.adapters.batsim.transport.connection import (
    AnswerLimits,
    SchedulerConnection,
    import_zmq,
)
from equipoise.adapters.batsim.transport.driver import (
    ConnectedScheduler,
    Listener,
    RunFailed,
    ScheduledRun,
    drive,
)
from equipoise.adapters.batsim.transport.endpoint import (
    choose_endpoint,
    scheduler_words,
    short_name,
)
from equipoise.adapters.batsim.transport.process import SchedulerProcess, describe_exit_code
from equipoise.errors import WorldError

_END_S: Final = 10.0
"""How long a scheduler may take to end after the simulation has ended."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SchedulerOptions:
    """Which scheduler, and how long it may take."""

    endpoint: str | None = None
    """The address to connect to; None for the default, or a free one for a started scheduler."""
    command: str | None = None
    """The command of a scheduler to start; ``{endpoint}`` and ``{port}`` are replaced."""
    log: Path | None = None
    """Where the output of the started scheduler goes."""
    limits: AnswerLimits = field(default_factory=AnswerLimits)


@dataclass(frozen=True, slots=True)
class SchedulerOutcome:
    """A complete run, and how the started scheduler has ended."""

    name: str
    run: ScheduledRun
    exit_code: int | None = None
    """None if the scheduler was not started here, or did not end by itself."""
    was_stopped: bool = False
    last_lines: str = ""


def run_scheduler(
    inputs: BatsimInputs,
    codec: Codec,
    options: SchedulerOptions,
    *,
    listener: Listener | None = None,
    notice: Callable[[str], None] = lambda text: None,
) -> SchedulerOutcome:
    """Run the simulation; ``RunFailed`` if the scheduler breaks it.

    A scheduler that was started here has ended when this function returns or raises.
    """
    endpoint = choose_endpoint(options.command, options.endpoint)
    import_zmq()  # a missing extra is reported before a process starts
    if options.command is None:
        with SchedulerConnection(endpoint, options.limits, notice=notice) as connection:
            return SchedulerOutcome(endpoint, _drive(inputs, codec, connection, listener))
    words = scheduler_words(options.command, endpoint)
    with ExitStack() as stack:
        process = stack.enter_context(SchedulerProcess(words, options.log))
        connection = stack.enter_context(
            SchedulerConnection(
                endpoint, options.limits, has_ended=process.has_ended, notice=notice
            )
        )
        try:
            run = _drive(inputs, codec, connection, listener)
        except RunFailed as error:
            process.stop(grace_s=0)
            known = error.code == "scheduler-ended"
            text = f"{error}{_ending(process, known=known)}"
            raise RunFailed(text, error.code, error.run) from None
        except WorldError as error:  # before the first message
            process.stop(grace_s=0)
            raise WorldError(f"{error}{_ending(process)}", code=error.code) from None
        process.stop(grace_s=_END_S)
    code = None if process.was_stopped else process.exit_code
    return SchedulerOutcome(short_name(words), run, code, process.was_stopped, process.last_lines())


def _drive(
    inputs: BatsimInputs,
    codec: Codec,
    connection: SchedulerConnection,
    listener: Listener | None,
) -> ScheduledRun:
    options = codec.greet(connection.request, inputs.setup.options)
    simulation = inputs.build(options)
    source = ConnectedScheduler(connection, codec, simulation.write_rows)
    return drive(simulation, source, listener)


def _ending(process: SchedulerProcess, *, known: bool = False) -> str:
    """Return what the user needs to find the defect of a scheduler.

    ``known``: the message says already how it ended.
    """
    code = process.exit_code
    silent = known or process.was_stopped or code is None
    ended = "" if silent or code is None else f"; it ended with {describe_exit_code(code)}"
    lines = process.last_lines()
    return f"{ended}\nthe last lines of the scheduler:\n{lines}" if lines else ended
