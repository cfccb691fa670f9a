"""The timeline: what may happen to every VM and host, where and when, before it is decided.

``Timeline`` holds the schedules, ``constraints`` what hosts and links allow, ``states`` the states
at each moment.
"""
