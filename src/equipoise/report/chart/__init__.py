"""Chart: pictures of figures over time, as SVG written by hand.

Enter by ``plot.draw``, ``heat.draw`` and ``bars.draw``. Never reads a file, never knows what a
figure means, and never lets a word through that is not escaped.
"""
