"""Who carries out a campaign: the engine that the person wants, made ready for it."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Final

from equipoise.cli.read import read_bytes
from equipoise.control.ports import Engine
from equipoise.errors import InvalidInput, Problem
from equipoise.model.upgrade.campaign import Campaign
from equipoise.sim.upgrading.engines import engine

ANSIBLE: Final = "ansible"
"""It is not found by an entry point: it needs to know where the campaign lies, and how hosts are
reached."""


def hands(name: str, campaign: Campaign, source: str, access: Path | None) -> Engine:
    """Make an engine by its name; ``source`` is what the person called the campaign."""
    if name != ANSIBLE:
        if access is not None:
            what = f"the engine {name} does not log in anywhere"
            raise _refusal("--access", what, f"give it with --engine {ANSIBLE}")
        return engine(name, campaign, also=(ANSIBLE,))
    if access is None:
        raise _refusal("--access", "is missing", "name the file that says how hosts are reached")
    return _by_ansible(campaign, source, access)


def _by_ansible(campaign: Campaign, source: str, access: Path) -> Engine:
    from equipoise.hosts.ansible.access import parse_access
    from equipoise.hosts.ansible.ready import engine_for
    from equipoise.hosts.ansible.ways import Surroundings

    began_ms = time.monotonic_ns() // 1_000_000
    return engine_for(
        campaign,
        Surroundings(source=source, folder=Path(source).parent, environ=os.environ),
        parse_access(read_bytes(access), str(access)),
        Surroundings(source=str(access), folder=access.parent, environ=os.environ),
        lambda: time.monotonic_ns() // 1_000_000 - began_ms,
    )


def _refusal(option: str, what: str, cure: str) -> InvalidInput:
    return InvalidInput(option, [Problem(key="", what=what, cure=cure)])
