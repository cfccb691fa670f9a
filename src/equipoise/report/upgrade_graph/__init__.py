"""The resource graph and the control graph of an upgrade as SVG, DOT and JSON.

Enter by ``write_graph_view``. Never decides anything: it draws what the coordinator has made.
"""

from equipoise.report.upgrade_graph.view import GraphView, write_graph_view

__all__ = ["GraphView", "write_graph_view"]
