"""The arrays of drawn trials: their columns and codes, and the defaults of machines."""

from __future__ import annotations

from typing import Final, NamedTuple

from equipoise.model.host import Host, HostState
from equipoise.model.quantity import HostId, VmId
from equipoise.model.vm import Vm, VmState
from equipoise.spec.batch.cases import HOST_CODES, KIND_CODES, VM_CODES, Array

# The largest trial has 64 VMs: their configured memory fits on one host.
DEFAULT_HOST: Final = Host(id=HostId("h"), cores=8, mhz_per_core=1000, memory_mib=65_536)
DEFAULT_VM: Final = Vm(id=VmId("v"), vcpus=1, memory_mib=1024, template="image")


NO_HOST: Final = -1
NONE: Final = -1

# The kinds of parameters of a constraint.
SOME_VMS, SOME_HOSTS, VM_GROUPS, HOST_GROUPS, VM_LIST = range(5)
ONE_VM, ONE_HOST, NUMBER, CHOICE, SOME_CHOICES = range(5, 10)
# The columns of a step.
KIND, VM, SOURCE, TARGET, SWITCH, RESOURCE, AMOUNT, START, END = range(9)
# The columns of a link; a row with 0 Mbit/s is unused.
AT, TO, MBPS = range(3)

NO_LIMIT: Final = 0
"""The limit of a switch without one; the limit of an unused row is ``NONE``."""

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


class TrialArrays(NamedTuple):
    """Trials as arrays; the first axis of every array is the trial."""

    counts: Array
    """The numbers of hosts, VMs and steps."""
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
    """The limits of switches; the second axis is empty without networks."""
    links: Array
    """The links of hosts in the order of the hosts, then the links between switches."""
