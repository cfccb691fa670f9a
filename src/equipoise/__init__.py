"""Equipoise keeps a virtualised cluster in balance and verifies every decision it makes.

    import equipoise as eq

    cluster = eq.load("examples/small.yaml")
    print(eq.recommend(cluster))

Names are imported when they are first used, so that ``import equipoise`` takes no time.
"""

from __future__ import annotations

import sys
from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from equipoise.api.advice import Recommendation, place, recommend, solve, verify, whatif
    from equipoise.api.campaigns import campaign, upgrade
    from equipoise.api.jobs import JobsRun, simulate_jobs
    from equipoise.api.loading import load
    from equipoise.api.simulation import SimulationRun, Sweep, simulate, sweep
    from equipoise.errors import EquipoiseError, InvalidInput, MissingExtra, WorldError
    from equipoise.model.action import Migrate
    from equipoise.model.host import Host
    from equipoise.model.inventory import Inventory
    from equipoise.model.plan import Intent, Plan, Proposal, Purpose, Step
    from equipoise.model.rule import KeepApart, KeepTogether, Satisfy, StayOff, StayWithin
    from equipoise.model.scenario.scenario import Scenario
    from equipoise.model.state.snapshot import Snapshot
    from equipoise.model.vm import Vm

__version__ = "0.1.0"

_MODULES: Final = {
    "api.advice": ("Recommendation", "place", "recommend", "solve", "verify", "whatif"),
    "api.campaigns": ("campaign", "upgrade"),
    "api.jobs": ("JobsRun", "simulate_jobs"),
    "api.loading": ("load",),
    "api.simulation": ("SimulationRun", "Sweep", "simulate", "sweep"),
    "errors": ("EquipoiseError", "InvalidInput", "MissingExtra", "WorldError"),
    "model.action": ("Migrate",),
    "model.host": ("Host",),
    "model.inventory": ("Inventory",),
    "model.plan": ("Intent", "Plan", "Proposal", "Purpose", "Step"),
    "model.rule": ("KeepApart", "KeepTogether", "Satisfy", "StayOff", "StayWithin"),
    "model.scenario.scenario": ("Scenario",),
    "model.state.snapshot": ("Snapshot",),
    "model.vm": ("Vm",),
}
_HOME: Final = {name: module for module, names in _MODULES.items() for name in names}

__all__ = [
    "EquipoiseError",
    "Host",
    "Intent",
    "InvalidInput",
    "Inventory",
    "JobsRun",
    "KeepApart",
    "KeepTogether",
    "Migrate",
    "MissingExtra",
    "Plan",
    "Proposal",
    "Purpose",
    "Recommendation",
    "Satisfy",
    "Scenario",
    "SimulationRun",
    "Snapshot",
    "StayOff",
    "StayWithin",
    "Step",
    "Sweep",
    "Vm",
    "WorldError",
    "campaign",
    "load",
    "place",
    "recommend",
    "simulate",
    "simulate_jobs",
    "solve",
    "sweep",
    "upgrade",
    "verify",
    "whatif",
]


def __getattr__(name: str) -> Any:
    module = _HOME.get(name)
    if module is None:
        message = f"module 'equipoise' has no attribute {name!r}"
        raise AttributeError(message)
    value = getattr(import_module(f"equipoise.{module}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})


class _Package(ModuleType):
    """Keeps the API names when a subpackage of the same name (``upgrade``) is imported."""

    def __setattr__(self, name: str, value: object) -> None:
        if not (name in _HOME and isinstance(value, ModuleType)):
            super().__setattr__(name, value)


sys.modules[__name__].__class__ = _Package
