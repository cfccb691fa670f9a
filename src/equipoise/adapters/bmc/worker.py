"""The worker process that sends one request to one management controller (BMC).

Started by ``python -m equipoise.adapters.bmc.worker``, with the request as JSON on standard input;
the answer comes as JSON on standard output. The worker never repeats a request; the caller does. It
is a process of its own for two reasons: the caller can kill it whatever the controller does, and in
pyghmi a bad answer of one controller disturbs the sessions with all others of the process.
"""

from __future__ import annotations

import json
import signal
import sys
from contextlib import redirect_stdout
from typing import Final

from equipoise.adapters.bmc.host_power import BmcRequest, answer_to_document

ORPHAN_S: Final = 60
"""Longer than any caller waits: a worker that still runs then has lost its caller."""


def main() -> None:
    """Send the request and print the answer."""
    signal.alarm(ORPHAN_S)
    request = BmcRequest(**json.load(sys.stdin))
    out = sys.stdout
    with redirect_stdout(sys.stderr):  # output of a library must not mix with the answer
        if request.by == "redfish":
            from equipoise.adapters.bmc import redfish  # noqa: PLC0415

            answer = redfish.send_request(request)
        else:
            from equipoise.adapters.bmc import ipmi  # noqa: PLC0415

            answer = ipmi.send_request(request)
    json.dump(answer_to_document(answer), out)


if __name__ == "__main__":
    main()
