"""What is known of OpenStack Nova as a target: the questions, and trials that it can answer."""

from __future__ import annotations

from typing import Final

from equipoise.fuzz.generate.options import Amounts, Options
from equipoise.fuzz.schedulers.known import Known
from equipoise.fuzz.targets.environment import TARGETS, find
from equipoise.fuzz.targets.nova_filters import Nova, NovaPipeline
from equipoise.fuzz.targets.nova_requests import PLACED
from equipoise.fuzz.targets.nova_words import CONSTRAINTS, EXTRA_SPECS
from equipoise.fuzz.targets.worker import missing
from equipoise.model.host import HostState
from equipoise.model.problem.problem import ActionKind
from equipoise.model.value import FrozenMap
from equipoise.model.vm import VmState

_WORDS: Final = ("a", "b")
_ADMITS: Final = Options(
    hosts=(2, 4),
    vms=(3, 5),
    host_states=FrozenMap({HostState.ON: 8, HostState.STANDBY: 1, HostState.MAINTENANCE: 1}),
    vm_states=FrozenMap({VmState.RUNNING: 3, VmState.READY: 6, VmState.SLEEPING: 2}),
    overfull=0,
    agents=0,
    paired=0,
    replaceable=0,
    allocated=0,
    actions=(1, 1),
    end_states=FrozenMap({VmState.RUNNING: 1}),
    total=(1, 2),
    kinds=frozenset((ActionKind.BOOT, ActionKind.MIGRATE)),
    switched=0,
    waits=(0, 0),  # all at once, so that much is under way when a VM comes
    # What Nova reads as a limit: VMs take nothing of it, else a plan that breaks it were no plan.
    resources=FrozenMap({"instances": Amounts(capacity=(0, 3), consumption=(0, 0))}),
    labels=FrozenMap(
        {
            "filter_tenant_id": _WORDS,
            "instance_type": _WORDS,
            "flavor": _WORDS,
            "subnet": _WORDS,
            # Some that Nova reads as comparisons, or as the size of a network that there is not.
            "os_distro": ("a", ">= 4", "<or>"),
            "cidr": ("/24", "/99"),
        }
    ),
    busy=1,
    given=FrozenMap({"nb": (1, 2), "key": ("os_distro",)}),
    broken_at_first=False,
)
_PLACE: Final = _ADMITS.but(
    vm_states=FrozenMap({VmState.READY: 8, VmState.RUNNING: 3, VmState.SLEEPING: 2}),
    actions=(0, 0),
    total=None,
)


def _missing() -> str:
    return "" if find("nova") is not None else str(missing("nova"))


NOVA: Final = Known(
    name="nova",
    about="the filters of OpenStack Nova's scheduler, each asked by itself",
    make=Nova,
    question="admits",
    constraints=CONSTRAINTS,
    options=_ADMITS,
    settings={"extra_specs": EXTRA_SPECS},
    version=TARGETS["nova"].version,
    findings=TARGETS["nova"].findings,
    missing=_missing,
)
NOVA_PIPELINE: Final = Known(
    name="nova-pipeline",
    about="OpenStack Nova's scheduler without Placement, which finds hosts for VMs",
    make=NovaPipeline,
    question="place",
    constraints=PLACED,
    options=_PLACE,
    settings={"extra_specs": EXTRA_SPECS},
    version=TARGETS["nova"].version,
    findings=TARGETS["nova"].findings,
    missing=_missing,
)
