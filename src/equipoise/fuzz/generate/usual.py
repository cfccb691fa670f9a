"""What machines of trials are like where chance has no say in it."""

from __future__ import annotations

from typing import Final

from equipoise.model.host import Host
from equipoise.model.quantity import HostId, VmId
from equipoise.model.vm import Vm

USUAL_HOST: Final = Host(id=HostId("h"), cores=8, mhz_per_core=1000, memory_mib=65_536)
USUAL_VM: Final = Vm(id=VmId("v"), vcpus=1, memory_mib=1024, template="image")
