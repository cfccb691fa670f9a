"""``equipoise kube serve``: the API of a simulated cluster, for kubectl and any client."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from equipoise.adapters.kubernetes.api.server import ServerOptions
from equipoise.adapters.kubernetes.run.serve import ServedCluster, ServeOptions
from equipoise.cli.file_io import check_writable, read_text
from equipoise.cli.kube.options import cluster_options, read_nodes, read_workload
from equipoise.cli.output import EXIT_OK, printable, progress_console

_REQUEST_S: Final = 60.0


def run(given: Mapping[str, Any]) -> int:
    """Serve until the command is interrupted."""
    workload = read_nodes(given) if given["workload"] is None else read_workload(given)
    kubeconfig = given["kubeconfig"]
    if kubeconfig is not None:
        check_writable(kubeconfig)
    token = "" if given["token"] is None else read_text(Path(given["token"])).strip()
    options = ServeOptions(
        server=ServerOptions(
            host=given["host"],
            port=given["port"],
            token=token,
            request_s=_REQUEST_S,
            certificate=given["tls_cert"],
            key=given["tls_key"],
        ),
        cluster=cluster_options(given),
        pace=given["pace"],
        kubeconfig=kubeconfig,
    )
    if token and given["tls_cert"] is None:
        text = "kubectl sends a token only over TLS: name --tls-cert and --tls-key for it"
        _print_problem(text)
    asyncio.run(_serve(ServedCluster(workload, options, _print_problem)))
    return EXIT_OK


async def _serve(served: ServedCluster) -> None:
    loop = asyncio.get_running_loop()
    task = asyncio.ensure_future(served.serve(_print_address))
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, task.cancel)
    try:
        await task
    except asyncio.CancelledError:
        progress_console().print("stopped")


def _print_problem(text: str) -> None:
    progress_console().print(printable(text), soft_wrap=True)


def _print_address(url: str) -> None:
    progress_console().print(f"serving at {url}: kubectl --server {url} get nodes", soft_wrap=True)
