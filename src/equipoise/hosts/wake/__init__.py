"""Wake: switches real hosts on and off, by Redfish, IPMI and Wake-on-LAN.

Enter by ``access.parse_access`` with an access file and ``ways.wakers`` for what it describes, then
``waking.woken``. The world refusing is a value, never an exception. Never switches a host off the
hard way, never says or writes down a password.
"""
