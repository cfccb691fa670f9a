"""Commands on a live cluster: ``equipoise kube import`` and ``equipoise kube schedule``.

The first only reads nodes and pods. The second is the placement of Equipoise as a scheduler.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from equipoise.adapters.kubernetes.client.connection import ApiAddress, address_of
from equipoise.adapters.kubernetes.client.importer import import_cluster
from equipoise.adapters.kubernetes.client.kubeconfig import read_kubeconfig
from equipoise.adapters.kubernetes.client.own_scheduler import OwnScheduler, OwnSchedulerOptions
from equipoise.cli.file_io import check_writable, write_file
from equipoise.cli.output import (
    EXIT_OK,
    console,
    print_document,
    printable,
    progress_console,
    show_spinner,
)
from equipoise.documents.kubernetes import KubernetesImportDocument
from equipoise.errors import InputProblem, InvalidInput
from equipoise.files.write import plain_to_yaml, to_yaml


def run_import(given: Mapping[str, Any], *, as_json: bool) -> int:
    """Import a cluster and write the files that the options name."""
    output: Path | None = given["output"]
    inventory: Path | None = given["inventory"]
    address = read_address(given)
    for path in (output, inventory):
        if path is not None:
            check_writable(path)
    with show_spinner("reading the cluster"):
        found = import_cluster(address)
    if output is not None:
        write_file(output, plain_to_yaml(found.manifests()).encode())
    if inventory is not None:
        write_file(inventory, to_yaml(found.inventory).encode())
    document = KubernetesImportDocument(
        nodes=len(found.nodes), pods=len(found.pods), warnings=found.warnings
    )
    if as_json:
        print_document(document)
        return EXIT_OK
    console().print(f"{document.nodes:,} nodes, {document.pods:,} pods", highlight=False)
    for warning in document.warnings:
        progress_console().print(printable(warning), soft_wrap=True)
    return EXIT_OK


def run_scheduler(given: Mapping[str, Any]) -> int:
    """Schedule until the command is interrupted, or the API ends."""
    options = OwnSchedulerOptions(
        policy=given["policy"], name=given["name"], deschedule_s=given["deschedule"]
    )
    scheduler = OwnScheduler(read_address(given), options, _print_line)
    try:
        scheduler.run()
    finally:
        scheduler.close()
    return EXIT_OK


def read_address(given: Mapping[str, Any]) -> ApiAddress:
    """Return the API that the options name: by a kubeconfig, or by its URL."""
    kubeconfig, server = given["kubeconfig"], given["server"]
    token_file = given["token_file"]
    if (kubeconfig is None) is (server is None):
        what = "is missing" if server is None else "and --kubeconfig exclude each other"
        raise _problem("--server", what, "give --kubeconfig FILE or --server URL")
    if kubeconfig is not None:
        if token_file is not None:
            what = "belongs to --server"
            raise _problem("--token-file", what, "write the token into the kubeconfig")
        return read_kubeconfig(kubeconfig, given["kube_context"])
    if given["kube_context"] is not None:
        raise _problem("--context", "belongs to --kubeconfig", "leave it out")
    return address_of(server, token_file=token_file)


def _problem(key: str, what: str, cure: str) -> InvalidInput:
    problem = InputProblem(key=key, what=what, cure=cure, code="option-conflict")
    return InvalidInput("kube", [problem])


def _print_line(line: str) -> None:
    progress_console().print(printable(line), soft_wrap=True)
