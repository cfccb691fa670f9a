"""A kubeconfig: which server and user a context names, and what is wrong with one."""

from __future__ import annotations

import base64
import json
from pathlib import Path
from typing import Any

import pytest

from equipoise.adapters.kubernetes.client.connection import address_of
from equipoise.adapters.kubernetes.client.kubeconfig import read_kubeconfig
from equipoise.errors import InvalidInput
from kubernetes_certificate import certificate

Object = dict[str, Any]


def kubeconfig(folder: Path, cluster: Object, user: Object | None = None, **more: Any) -> Path:
    path = folder / "config"
    content = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "c", "cluster": {"server": "https://h:6443", **cluster}}],
        "users": [{"name": "u", "user": user or {}}],
        "contexts": [{"name": "x", "context": {"cluster": "c", "user": "u"}}],
        "current-context": "x",
    }
    path.write_text(json.dumps(content | more), encoding="utf-8")
    return path


def problem_of(path: Path, context: str | None = None) -> tuple[str, str]:
    with pytest.raises(InvalidInput) as wrong:
        read_kubeconfig(path, context)
    (problem,) = wrong.value.problems
    assert problem.cure
    return problem.key, problem.code


def encoded(content: bytes) -> str:
    return base64.b64encode(content).decode()


def test_the_current_context_names_server_and_token(tmp_path: Path) -> None:
    found = read_kubeconfig(kubeconfig(tmp_path, {}, {"token": "abc"}))
    assert (found.url, found.token) == ("https://h:6443", "abc")


def test_another_context_is_chosen_by_name(tmp_path: Path) -> None:
    clusters = [
        {"name": "c", "cluster": {"server": "http://a"}},
        {"name": "d", "cluster": {"server": "http://b/"}},
    ]
    contexts = [
        {"name": "x", "context": {"cluster": "c", "user": "u"}},
        {"name": "y", "context": {"cluster": "d"}},
    ]
    path = kubeconfig(tmp_path, {}, clusters=clusters, contexts=contexts)
    assert read_kubeconfig(path).url == "http://a"
    assert read_kubeconfig(path, "y").url == "http://b"
    assert problem_of(path, "z") == ("--context", "unknown-name")


def test_a_file_of_a_token_is_beside_the_kubeconfig(tmp_path: Path) -> None:
    path = kubeconfig(tmp_path, {}, {"tokenFile": "token"})
    assert problem_of(path) == ("tokenFile", "file-not-readable")
    (tmp_path / "token").write_text("abc\n")
    assert read_kubeconfig(path).token_file == tmp_path / "token"


@pytest.mark.parametrize(
    ("cluster", "user", "key", "code"),
    [
        ({"server": ""}, {}, "clusters[c].cluster.server", "invalid-value"),
        ({"server": "ftp://h"}, {}, "clusters[c].cluster.server", "invalid-value"),
        ({}, {"exec": {"command": "aws"}}, "users[u].user.exec", "unsupported-feature"),
        ({}, {"auth-provider": {"a": 1}}, "users[u].user.auth-provider", "unsupported-feature"),
        ({}, {"username": "a", "password": "b"}, "users[u].user.username", "unsupported-feature"),
        ({"proxy-url": "http://p"}, {}, "clusters[c].cluster.proxy-url", "unsupported-feature"),
        (
            {"certificate-authority-data": "%"}, {},
            "clusters[c].cluster.certificate-authority-data", "invalid-value",
        ),
        (
            {"certificate-authority-data": encoded(b"none")}, {},
            "clusters[c].cluster.certificate-authority", "invalid-value",
        ),
        (
            {"certificate-authority": "absent.pem"}, {},
            "clusters[c].cluster.certificate-authority", "file-not-readable",
        ),
        (
            {}, {"client-certificate-data": encoded(b"x")},
            "users[u].user.client-key", "missing-key",
        ),
        (
            {}, {"client-certificate-data": encoded(b"x"), "client-key-data": encoded(b"y")},
            "users[u].user.client-certificate", "invalid-value",
        ),
    ],
)  # fmt: skip
def test_a_wrong_key_is_named(
    cluster: Object, user: Object, key: str, code: str, tmp_path: Path
) -> None:
    assert problem_of(kubeconfig(tmp_path, cluster, user)) == (key, code)


def test_a_token_makes_a_plugin_needless(tmp_path: Path) -> None:
    path = kubeconfig(tmp_path, {}, {"exec": {"command": "aws"}, "token": "abc"})
    assert read_kubeconfig(path).token == "abc"


@pytest.mark.parametrize(
    ("more", "key", "code"),
    [
        ({"current-context": ""}, "current-context", "missing-key"),
        ({"current-context": "z"}, "current-context", "unknown-name"),
        ({"clusters": None}, "clusters", "missing-key"),
        ({"clusters": []}, "contexts[x].context.cluster", "unknown-name"),
        ({"users": 5}, "contexts[x].context.user", "unknown-name"),
    ],
)
def test_a_missing_part_is_named(more: Object, key: str, code: str, tmp_path: Path) -> None:
    assert problem_of(kubeconfig(tmp_path, {}, **more)) == (key, code)


def test_a_file_that_is_none_is_named(tmp_path: Path) -> None:
    assert problem_of(tmp_path / "absent") == ("", "file-not-readable")


def test_certificates_of_user_and_authority_are_loaded(tmp_path: Path) -> None:
    public, private = certificate(tmp_path)
    user = {"client-certificate-data": encoded(public), "client-key-data": encoded(private)}
    cluster = {"certificate-authority-data": encoded(public)}
    tls = read_kubeconfig(kubeconfig(tmp_path, cluster, user)).tls
    assert tls is not None
    assert (tls.cert_store_stats()["x509"], tls.check_hostname) == (1, True)
    insecure = read_kubeconfig(kubeconfig(tmp_path, {"insecure-skip-tls-verify": True})).tls
    assert insecure is not None
    assert not insecure.check_hostname


@pytest.mark.parametrize("url", ["", "h:1", "http://", "http://u:p@h", "http://h:x", "http://[h"])
def test_an_address_is_http_with_a_host(url: str) -> None:
    with pytest.raises(InvalidInput) as wrong:
        address_of(url)
    assert wrong.value.problems[0].key == "--server"
