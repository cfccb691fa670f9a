"""Reads a kubeconfig: the server of a context, and how its user shows who it is."""

from __future__ import annotations

import ssl
import tempfile
from base64 import b64decode
from binascii import Error as Base64Error
from pathlib import Path
from typing import Any, Final, NoReturn

from equipoise.adapters.kubernetes.client.connection import ApiAddress, address_of, token_problem
from equipoise.errors import InputProblem, InvalidInput
from equipoise.files.document import (
    FileFormat,
    ParsedTree,
    check_size_for_format,
    decode_text,
)
from equipoise.files.yaml_reader import read_yaml

Object = dict[str, Any]
_TOKEN_CURE: Final = (
    "write a token instead: kubectl create token NAME makes one, and users[].user.token holds it"
)
_NAMED_MAX: Final = 10
_UNSUPPORTED: Final = {
    "exec": "runs a program, and no program of a kubeconfig is run",
    "auth-provider": "is a plugin, and no plugin of a kubeconfig is run",
    "username": "is basic authentication, which Kubernetes has removed",
}


def read_kubeconfig(path: Path, context: str | None = None) -> ApiAddress:
    """Return the address that a context names, or the current one.

    :raises InvalidInput: with the key that is wrong and its cure.
    """
    return _Kubeconfig(path).address(context)


class _Kubeconfig:
    """The file, with its name for messages."""

    def __init__(self, path: Path) -> None:
        self._path = path
        try:
            content = path.read_bytes()
        except OSError as error:
            what = f"cannot be read: {(error.strerror or str(error)).lower()}"
            self._reject("", what, "name a kubeconfig", code="file-not-readable")
        check_size_for_format(len(content), str(path), FileFormat.YAML)
        self._tree: ParsedTree = read_yaml(decode_text(content, str(path)), str(path))
        for wrong in self._tree.diagnostics:
            self._reject(".".join(map(str, wrong.path)), wrong.what, wrong.cure, code=wrong.code)
        if not isinstance(self._tree.root, dict) or not isinstance(
            self._tree.root.get("clusters"), list
        ):
            self._reject("clusters", "is missing", "name a kubeconfig", code="missing-key")

    def address(self, context: str | None) -> ApiAddress:
        """Return the address of a context."""
        name = context or self._tree.root.get("current-context")
        if not isinstance(name, str) or not name:
            cure = "name one with --context"
            self._reject("current-context", "is missing", cure, code="missing-key")
        chosen = self._named(
            "contexts", "context", name, "--context" if context else "current-context"
        )
        cluster_name, user_name = chosen.get("cluster"), chosen.get("user")
        key = f"contexts[{name}].context"
        cluster = self._named("clusters", "cluster", cluster_name, f"{key}.cluster")
        user = self._named("users", "user", user_name, f"{key}.user") if user_name else {}
        cluster_key, user_key = f"clusters[{cluster_name}].cluster", f"users[{user_name}].user"
        for unsupported, why in _UNSUPPORTED.items():
            if user.get(unsupported) and not (user.get("token") or user.get("tokenFile")):
                self._reject(
                    f"{user_key}.{unsupported}", why, _TOKEN_CURE, code="unsupported-feature"
                )
        for unsupported in ("proxy-url", "tls-server-name"):
            if cluster.get(unsupported):
                what, cure = "is not supported", "leave it out, and name a server that is reachable"
                self._reject(f"{cluster_key}.{unsupported}", what, cure, code="unsupported-feature")
        url = cluster.get("server")
        token = user.get("token")
        return address_of(
            url if isinstance(url, str) else "",
            key=f"{cluster_key}.server",
            source=str(self._path),
            token=token.strip() if isinstance(token, str) else "",
            token_file=None if token else self._token_file(user),
            tls=self._tls(cluster, cluster_key, user, user_key)
            if str(url).startswith("https:")
            else None,
        )

    def _named(self, collection: str, part: str, name: object, key: str) -> Object:
        """Return the cluster, context or user of a name."""
        entries = self._tree.root.get(collection)
        entries = entries if isinstance(entries, list) else []
        by_name = {str(entry.get("name")): entry for entry in entries if isinstance(entry, dict)}
        found = by_name.get(str(name))
        if found is None:
            known = ", ".join(list(by_name)[:_NAMED_MAX])
            cure = f"write one of {known}" if known else f"add it to {collection}"
            self._reject(key, f"{name!r:.60} is not in {collection}", cure, code="unknown-name")
        content = found.get(part)
        return content if isinstance(content, dict) else {}

    def _token_file(self, user: Object) -> Path | None:
        given = user.get("tokenFile")
        if not given:
            return None
        path = self._beside(str(given))
        try:
            path.read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise token_problem(path, error) from None
        return path

    def _beside(self, name: str) -> Path:
        """Return a path that is relative to the kubeconfig, as kubectl reads it."""
        return self._path.parent / name

    def _tls(
        self, cluster: Object, cluster_key: str, user: Object, user_key: str
    ) -> ssl.SSLContext:
        tls = ssl.create_default_context()
        authority = self._content(cluster, "certificate-authority", cluster_key)
        if cluster.get("insecure-skip-tls-verify") is True:
            tls.check_hostname = False
            tls.verify_mode = ssl.CERT_NONE
        elif authority is not None:
            try:
                # Only this authority counts, not those that the machine trusts.
                tls = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
                tls.load_verify_locations(cadata=authority.decode("ascii"))
            except (ssl.SSLError, ValueError):
                key = f"{cluster_key}.certificate-authority"
                self._reject(key, "is no certificate", "write a certificate in PEM")
        certificate = self._content(user, "client-certificate", user_key)
        private_key = self._content(user, "client-key", user_key)
        if (certificate is None) is not (private_key is None):
            missing = "client-certificate" if certificate is None else "client-key"
            what, cure = "is missing", "write the certificate and its key"
            self._reject(f"{user_key}.{missing}", what, cure, code="missing-key")
        if certificate is not None and private_key is not None:
            self._load_pair(tls, certificate, private_key, user_key)
        return tls

    def _load_pair(
        self, tls: ssl.SSLContext, certificate: bytes, private_key: bytes, user_key: str
    ) -> None:
        # The library reads a pair only from files. The folder is readable by this user alone.
        with tempfile.TemporaryDirectory() as folder:
            pair = Path(folder) / "pair.pem"
            pair.write_bytes(private_key.rstrip() + b"\n" + certificate)
            try:
                # A function for the password keeps the library from asking at the terminal.
                tls.load_cert_chain(pair, password=lambda: "")
            except (ssl.SSLError, OSError, ValueError):
                key = f"{user_key}.client-certificate"
                what, cure = "does not fit client-key", "write a pair in PEM, without a password"
                self._reject(key, what, cure)

    def _content(self, part: Object, name: str, key: str) -> bytes | None:
        """Return what ``NAME-data`` holds, or the file that ``NAME`` names."""
        held = part.get(f"{name}-data")
        if held:
            try:
                return b64decode(str(held), validate=True)
            except (Base64Error, ValueError):
                self._reject(f"{key}.{name}-data", "is no base64", "copy it whole")
        given = part.get(name)
        if not given:
            return None
        try:
            return self._beside(str(given)).read_bytes()
        except OSError as error:
            what = f"cannot be read: {(error.strerror or str(error)).lower()}"
            cure = "name a file that can be read"
            self._reject(f"{key}.{name}", what, cure, code="file-not-readable")

    def _reject(self, key: str, what: str, cure: str, *, code: str = "invalid-value") -> NoReturn:
        problem = InputProblem(key=key, what=what, cure=cure, code=code)
        raise InvalidInput(str(self._path), [problem])
