"""Charts over time as SVG: plot, heatmap and gantt, in one frame.

Enter by ``plot.draw``, ``heatmap.draw`` and ``gantt.draw``. Never reads a file, never knows what a
figure means, and escapes all text.
"""
