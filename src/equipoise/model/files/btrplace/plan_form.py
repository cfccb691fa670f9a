"""BtrPlace's reconfiguration plans as they are written, key by key."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import field

from equipoise.model.files.btrplace.form import Amount, Number, Part, Time


class AllocateEvent(Part, tag="allocate", tag_field="id"):
    """The VM gets another amount of a resource along with the action."""

    vm: Number
    resource: str = field(name="rc")
    amount: Amount


class SubstitutedVmEvent(Part, tag="substitutedVM", tag_field="id"):
    """Another VM takes the place of the VM."""

    vm: Number
    new_vm: Number = field(name="newVm")


PlanEvent = AllocateEvent | SubstitutedVmEvent


class _Timed(Part):
    start: Time
    end: Time
    hooks: Mapping[str, tuple[PlanEvent, ...]] = {}
    """What happens before (``pre``) or after it (``post``)."""


class _OnNode(_Timed):
    node: Number


class _OnVm(_Timed):
    vm: Number


class _OnVmThere(_OnVm):
    on: Number


class _FromTo(_OnVm):
    source: Number = field(name="from")
    target: Number = field(name="to")


class BootNode(_OnNode, tag="bootNode", tag_field="id"):
    """Switch a node on."""


class ShutdownNode(_OnNode, tag="shutdownNode", tag_field="id"):
    """Switch a node off."""


class ForgeVm(_OnVm, tag="forgeVM", tag_field="id"):
    """Make a VM. BtrPlace itself has no words for it in a file; these are those of our worker."""


class BootVm(_OnVmThere, tag="bootVM", tag_field="id"):
    """Start a VM."""


class ShutdownVm(_OnVmThere, tag="shutdownVM", tag_field="id"):
    """Stop a VM."""


class MigrateVm(_FromTo, tag="migrateVM", tag_field="id"):
    """Move a running VM."""


class SuspendVm(_FromTo, tag="suspendVM", tag_field="id"):
    """Put a VM to sleep."""


class ResumeVm(_FromTo, tag="resumeVM", tag_field="id"):
    """Wake a VM."""


class AllocateVm(_OnVm, tag="allocate", tag_field="id"):
    """Give a VM another amount of a resource."""

    resource: str = field(name="rc")
    amount: Amount


class KillVm(_OnVm, tag="killVM", tag_field="id"):
    """End a VM for good."""


PlanAction = (
    BootNode | ShutdownNode | ForgeVm | BootVm | ShutdownVm | MigrateVm | SuspendVm | ResumeVm
    | AllocateVm | KillVm
)  # fmt: skip


class ReconfigurationPlan(Part):
    """What is done. For which cluster, is in ``origin``, and not looked at."""

    actions: tuple[PlanAction, ...]
