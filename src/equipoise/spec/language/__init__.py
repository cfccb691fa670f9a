"""The language itself: its words, its types, and the way from text to syntax and back.

Enter by ``parse`` and ``print_file``. Never judges anything: that is for the rest of the room.
"""
