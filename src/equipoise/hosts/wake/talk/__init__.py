"""Talk: one question to one management controller (BMC), in a process of its own.

Enter by ``python -m equipoise.hosts.wake.talk``, with the question as JSON on standard input; the
answer comes as JSON on standard output. Never asks twice: the caller knows how much patience there
is. A process of its own because it can be ended whatever the controller does, and because pyghmi
lets nonsense from one controller upset the talks with all others in the same process.
"""
