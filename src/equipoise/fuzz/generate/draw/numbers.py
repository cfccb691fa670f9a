"""Trials in numbers."""

from __future__ import annotations

from typing import Final, NamedTuple

from equipoise.model.host import HostState
from equipoise.model.vm import VmState
from equipoise.spec.batch.cases import HOST_CODES, KIND_CODES, VM_CODES, Array

NOWHERE: Final = -1
NONE: Final = -1

# What a parameter of a constraint is.
SOME_VMS, SOME_HOSTS, VM_GROUPS, HOST_GROUPS, VM_LIST = range(5)
ONE_VM, ONE_HOST, NUMBER, CHOICE, SOME_CHOICES = range(5, 10)
# The columns of a step.
KIND, VM, SOURCE, TARGET, SWITCH, RESOURCE, AMOUNT, START, END = range(9)
# The columns of a link; one of 0 Mbit/s is not there.
AT, TO, MBPS = range(3)

NO_LIMIT: Final = 0
"""Of a switch; that of a switch that is not there is ``NONE``."""

ON: Final = HOST_CODES[HostState.ON]
STANDBY: Final = HOST_CODES[HostState.STANDBY]
MAINTENANCE: Final = HOST_CODES[HostState.MAINTENANCE]
INIT: Final = VM_CODES[VmState.INIT]
READY: Final = VM_CODES[VmState.READY]
RUNNING: Final = VM_CODES[VmState.RUNNING]
SLEEPING: Final = VM_CODES[VmState.SLEEPING]
TERMINATED: Final = VM_CODES[VmState.TERMINATED]
FORGE: Final = KIND_CODES["forge"]
BOOT: Final = KIND_CODES["boot"]
SHUTDOWN: Final = KIND_CODES["shutdown"]
MIGRATE: Final = KIND_CODES["migrate"]
REINSTANTIATE: Final = KIND_CODES["reinstantiate"]
SUSPEND: Final = KIND_CODES["suspend"]
RESUME: Final = KIND_CODES["resume"]
ALLOCATE: Final = KIND_CODES["allocate"]
KILL: Final = KIND_CODES["kill"]
POWER_ON: Final = KIND_CODES["power_on"]
POWER_OFF: Final = KIND_CODES["power_off"]
ENTER: Final = KIND_CODES["enter_maintenance"]
LEAVE: Final = KIND_CODES["leave_maintenance"]


class Trials(NamedTuple):
    """Trials in numbers: the first axis of every array is the trial."""

    counts: Array
    """Hosts, VMs and steps."""
    continuous: Array
    host_state: Array
    host_label: Array
    capacity: Array
    vm_state: Array
    vm_host: Array
    vm_label: Array
    tenant: Array
    consumption: Array
    agent: Array
    replaceable: Array
    pair: Array
    steps: Array
    arguments: Array
    switches: Array
    """Their limits; of no width where there is no network."""
    links: Array
    """Those of the hosts, in their order, and then those between switches."""
