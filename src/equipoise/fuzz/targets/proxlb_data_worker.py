"""What both questions to ProxLB need: its figures, and what its main loop does with them.

Run by ProxLB's interpreter; never import this module from ours.
"""

from proxlb.models.calculations import Calculations
from proxlb.utils.proxlb_data import ProxLbData

BYTES_PER_MIB = 1024 * 1024
NO_PRESSURE = {
    "pressure_some_percent": 0.0,
    "pressure_full_percent": 0.0,
    "pressure_some_spikes_percent": 0.0,
    "pressure_full_spikes_percent": 0.0,
    "pressure_hot": False,
}


def decide(data: ProxLbData) -> None:
    """Let the greedy engine decide, as the main loop does."""
    Calculations.set_node_assignments(data)
    Calculations.set_node_hot(data)
    Calculations.set_guest_hot(data)
    if Calculations.get_most_free_node(data) is None:
        return
    Calculations.validate_affinity_map(data)
    Calculations.relocate_guests_on_maintenance_nodes(data)
    Calculations.get_balanciness(data)
    Calculations.relocate_guests(data)


def node_metric(total: int, used: float) -> ProxLbData.Node.Metric:
    """What a node has of something."""
    return ProxLbData.Node.Metric(
        total=total,
        assigned=0,  # ProxLB sums it up itself, from the guests
        used=used,
        free=total - used,
        assigned_percent=0,
        free_percent=100 * (total - used) / total,
        used_percent=100 * used / total,
        **NO_PRESSURE,
    )


def guest_metric(total: int, used: float) -> ProxLbData.Guest.Metric:
    """What a guest takes of something."""
    return ProxLbData.Guest.Metric(total=total, used=used, **NO_PRESSURE)
