"""Switches real hosts on and off, by Redfish, IPMI and Wake-on-LAN.

The entry points are ``access.parse_access`` for an access file, ``access.power_controls`` for its
hosts and ``host_power.switch_and_wait``. A failure of a host or controller is a value, never an
exception. The package never forces a host off, and never prints or stores a password.
"""
