"""Ids and amounts of the model, each with its range, and the text of a count.

Ids are ``NewType``s, so that a VM id is never passed for a host id. Amounts are whole numbers
whose name ends in the unit (``memory_mib``, ``cpu_mhz``, ``at_ms``). The ranges are wide enough
for any site and narrow enough that sums over a cluster fit 64 bits.
"""

from __future__ import annotations

from typing import Annotated, Final, NewType

from msgspec import Meta

HostId = NewType("HostId", str)
VmId = NewType("VmId", str)
PoolId = NewType("PoolId", str)
RuleId = NewType("RuleId", str)
TenantId = NewType("TenantId", str)
GroupId = NewType("GroupId", str)
ResourceId = NewType("ResourceId", str)
PlanId = NewType("PlanId", str)
StepId = NewType("StepId", str)
RoleId = NewType("RoleId", str)
SlotId = NewType("SlotId", str)
RoleGroupId = NewType("RoleGroupId", str)
"""The id of a group of processors that run roles; ``GroupId`` is that of a resource group."""
ApplicationId = NewType("ApplicationId", str)
ProcessorId = NewType("ProcessorId", str)
"""The id of a host or a VM that runs roles."""
ResourceName = NewType("ResourceName", str)
"""The name of a shareable resource beyond CPU and memory, e.g. ``network_mbps``."""

# A Python "$" also matches before a final newline, hence the look-ahead.
ID_PATTERN: Final = r"^[A-Za-z0-9_.:@/+-]{1,128}$(?!\n)"
_ID = Meta(pattern=ID_PATTERN, description="letters, digits and _ . : @ / + -, at most 128")

HostKey = Annotated[HostId, _ID]
VmKey = Annotated[VmId, _ID]
PoolKey = Annotated[PoolId, _ID]
RuleKey = Annotated[RuleId, _ID]
TenantKey = Annotated[TenantId, _ID]
GroupKey = Annotated[GroupId, _ID]
ResourceKey = Annotated[ResourceId, _ID]
PlanKey = Annotated[PlanId, _ID]
StepKey = Annotated[StepId, _ID]
RoleKey = Annotated[RoleId, _ID]
SlotKey = Annotated[SlotId, _ID]
RoleGroupKey = Annotated[RoleGroupId, _ID]
ApplicationKey = Annotated[ApplicationId, _ID]
ProcessorKey = Annotated[ProcessorId, _ID]
ResourceNameKey = Annotated[ResourceName, _ID]

Mhz = Annotated[int, Meta(ge=0, le=10**9)]
MhzPerCore = Annotated[int, Meta(ge=1, le=10**6)]
Mib = Annotated[int, Meta(ge=0, le=10**12)]
PositiveMib = Annotated[int, Meta(ge=1, le=10**12)]
Amount = Annotated[int, Meta(ge=0, le=10**12)]
Cores = Annotated[int, Meta(ge=1, le=10**5)]
Shares = Annotated[int, Meta(ge=1, le=10**7)]
Watts = Annotated[int, Meta(ge=0, le=10**6)]
Celsius = Annotated[float, Meta(ge=-100, le=1000)]
OVERCOMMIT_MAX: Final = 1000.0
Overcommit = Annotated[float, Meta(ge=0.01, le=OVERCOMMIT_MAX)]
"""How much can be committed of each unit that is there: 1.5 means half as much again."""
PercentFrom100 = Annotated[int, Meta(ge=100, le=10_000)]
Count = Annotated[int, Meta(ge=0, le=10**7)]
PositiveCount = Annotated[int, Meta(ge=1, le=10**7)]
Version = Annotated[int, Meta(ge=0, le=2**63 - 1)]
Attempt = Annotated[int, Meta(ge=1, le=10**6)]
Seconds = Annotated[int, Meta(ge=0, le=10**9)]
PositiveSeconds = Annotated[int, Meta(ge=1, le=10**9)]
Milliseconds = Annotated[int, Meta(ge=0, le=10**15)]
PositiveMilliseconds = Annotated[int, Meta(ge=1, le=10**15)]
PlanMilliseconds = Annotated[int, Meta(ge=0, le=10**12)]
"""Milliseconds of a plan: up to thirty years, so that a sum of them still fits ``Milliseconds``."""
PositivePlanMilliseconds = Annotated[int, Meta(ge=1, le=10**12)]


def format_amount(amount: int, unit: str) -> str:
    """Return an amount of MHz or MiB in words; a large one in GHz or GiB."""
    larger, size = {"MHz": ("GHz", 1000), "MiB": ("GiB", 1024)}[unit]
    if amount < 10 * size:
        return f"{amount:,} {unit}"
    return f"{amount / size:,.1f}".removesuffix(".0") + f" {larger}"


def format_count(number: int, word: str) -> str:
    """Return ``1 host`` or ``2 hosts``."""
    return f"{number:,} {word}" if number == 1 else f"{number:,} {word}s"
