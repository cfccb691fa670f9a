"""``equipoise batsim-schedule``: a built-in policy as the scheduler of a Batsim."""

from __future__ import annotations

from importlib.metadata import version

from equipoise.adapters.batsim.schedule.decider import PolicyDecider
from equipoise.adapters.batsim.schedule.service import DecisionProcess, serve_simulation
from equipoise.cli.output import EXIT_OK, console, print_document, write_note
from equipoise.documents.simulation import BatsimScheduleDocument
from equipoise.errors import InputProblem, InvalidInput
from equipoise.sim.jobs.policies import POLICIES


def run(policy: str, endpoint: str, *, as_json: bool) -> int:
    """Answer one simulation up to its end, and print what was decided."""
    if policy not in POLICIES:
        what, cure = f"{policy!r} is no policy", f"write one of {', '.join(POLICIES)}"
        problem = InputProblem(key="--policy", what=what, cure=cure, code="unknown-name")
        raise InvalidInput("batsim-schedule", [problem])
    decider = PolicyDecider(POLICIES[policy])
    process = DecisionProcess(decider, f"equipoise-{policy}", version("equipoise"))
    serve_simulation(endpoint, process, write_note)
    document = BatsimScheduleDocument(
        policy=policy,
        protocol=process.version,
        messages=process.messages,
        started=decider.started,
        rejected=decider.rejected,
    )
    if as_json:
        print_document(document)
    else:
        console().print(f"{policy}: {decider.started} jobs started, {decider.rejected} rejected")
    return EXIT_OK
