"""Bodies of requests: JSON, and YAML where clients send it."""

from __future__ import annotations

from typing import Any, Final

import msgspec

from equipoise.adapters.kubernetes.api import errors
from equipoise.adapters.kubernetes.api.verbs.writes import PATCH_TYPES
from equipoise.errors import InvalidInput
from equipoise.files.yaml_reader import read_yaml

_JSON_TYPES: Final = frozenset({"", "application/json", *PATCH_TYPES})
_YAML_TYPES: Final = frozenset({"application/yaml", "application/apply-patch+yaml"})
_DEPTH_MAX: Final = 100
_NODES_MAX: Final = 1_000_000

_decode: Final = msgspec.json.Decoder().decode


def is_protobuf(raw: bytes, content_type: str) -> bool:
    """Return whether a body is in the form that most clients written in Go prefer."""
    return "protobuf" in content_type.lower() or raw.startswith(b"k8s\x00")


def decode(raw: bytes, content_type: str) -> Any:
    """Return the value of a body, or raise ``ApiError`` 400 or 415."""
    media = content_type.partition(";")[0].strip().lower()
    if is_protobuf(raw, media):
        text = (
            "the body of the request is protobuf, which this server does not read: send JSON"
            " (--kube-api-content-type=application/json, or contentType: application/json in"
            " clientConnection of the configuration; with kubectl create, add --dry-run=client"
            " -o json and pipe it to kubectl apply -f -)"
        )
        raise errors.ApiError(415, "UnsupportedMediaType", text)
    if media not in _JSON_TYPES and media not in _YAML_TYPES:
        text = (
            f"the body of the request was in an unknown format ({media}) - accepted media types"
            " include: application/json, application/yaml"
        )
        raise errors.ApiError(415, "UnsupportedMediaType", text)
    try:
        value = _decode(raw)
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError) as error:
        if media not in _YAML_TYPES:
            raise errors.bad_request(f"the body of the request is no JSON: {error}") from None
        value = _decode_yaml(raw)
    _check_depth(value)
    return value


def _decode_yaml(raw: bytes) -> Any:
    try:
        tree = read_yaml(raw.decode("utf-8"), "body")
    except UnicodeDecodeError:
        raise errors.bad_request("the body of the request is no text in UTF-8") from None
    except InvalidInput as error:
        raise errors.bad_request(f"the body of the request is no YAML: {error}") from None
    if tree.diagnostics:
        raise errors.bad_request(f"the body of the request is no YAML: {tree.diagnostics[0]}")
    return tree.root


def _check_depth(value: Any) -> None:
    """Refuse what is nested deeper than any object of Kubernetes, or repeats itself without end."""
    level: list[Any] = [value]
    nodes = 0
    for _ in range(_DEPTH_MAX):
        level = [
            inner
            for node in level
            if isinstance(node, dict | list)
            for inner in (node.values() if isinstance(node, dict) else node)
            if isinstance(inner, dict | list)
        ]
        if not level:
            return
        nodes += len(level)
        if nodes > _NODES_MAX:
            break
    raise errors.bad_request("the body of the request is nested too deeply or is too large")
