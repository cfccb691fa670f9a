"""A tiny service: it sends its version and its greeting over each connection of its socket."""

import json
import os
import socket
import sys
from pathlib import Path

VERSION = "1.0"

os.chdir(sys.argv[1])
settings = json.loads(Path("settings.json").read_text())
greeting = settings.get("greeting", "hello") + settings.get("colour", "")

Path("socket").unlink(missing_ok=True)
with socket.socket(socket.AF_UNIX) as server:
    server.bind("socket")
    server.listen()
    while True:
        caller, _ = server.accept()
        with caller:
            caller.sendall(f"greeter {VERSION}: {greeting}\n".encode())
