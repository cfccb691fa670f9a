"""Placement: where every VM is while a plan is carried out, as a picture and as lines of text.

Enter by ``course_of``; ``draw`` makes the picture of a course, ``lines`` the text. Never asks
whether a plan may be carried out: its steps have their effect as far as they have one.
"""

from equipoise.report.placement.course import Course, course_of
from equipoise.report.placement.lines import lines
from equipoise.report.placement.picture import Flag, draw

__all__ = ["Course", "Flag", "course_of", "draw", "lines"]
