"""How hosts share CPU and memory among their VMs, continuously between the events.

The entry point is ``ResourceAllocator``. It divides the capacity of a host among the demands of its
VMs, as a hypervisor does, and keeps the totals. It makes no decisions and draws no random numbers.
"""
