"""A tiny service: it sends its version and its greeting over each connection of its socket."""

import json
import os
import socket
import sys
from pathlib import Path

VERSION = "2.0"
KNOWN = {"greeting"}

os.chdir(sys.argv[1])
settings = json.loads(Path("settings.json").read_text())
if unknown := set(settings) - KNOWN:
    sys.exit(f"greeter {VERSION} does not know the setting {', '.join(sorted(unknown))}")
greeting = settings.get("greeting", "hello")

Path("socket").unlink(missing_ok=True)
with socket.socket(socket.AF_UNIX) as server:
    server.bind("socket")
    server.listen()
    while True:
        caller, _ = server.accept()
        with caller:
            caller.sendall(f"greeter {VERSION}: {greeting}\n".encode())
