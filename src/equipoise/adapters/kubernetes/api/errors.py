"""Refusals of the Kubernetes API, each of which becomes a ``Status`` object.

A refusal is part of the protocol that clients read, so its reasons are those of Kubernetes and not
the codes of this product.
"""

from __future__ import annotations

from typing import Any

Object = dict[str, Any]


class ApiError(Exception):
    """A request is refused with a code of HTTP, a reason and a message."""

    def __init__(self, code: int, reason: str, message: str, details: Object | None = None) -> None:
        super().__init__(message)
        self.code = code
        self.reason = reason
        self.message = message
        self.details = details

    def status(self) -> Object:
        """Return the ``Status`` object that answers the request."""
        status: Object = {
            "kind": "Status",
            "apiVersion": "v1",
            "metadata": {},
            "status": "Failure",
            "message": self.message,
            "reason": self.reason,
        }
        if self.details is not None:
            status["details"] = self.details
        status["code"] = self.code
        return status


def success(details: Object | None = None, *, code: int = 200) -> Object:
    """Return the ``Status`` object of a request that succeeded and has no other answer."""
    status: Object = {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success"}
    if details is not None:
        status["details"] = details
    status["code"] = code
    return status


def _details(kind: str, group: str, name: str) -> Object:
    details: Object = {"name": name} if name else {}
    if group:
        details["group"] = group
    details["kind"] = kind
    return details


def qualified(group: str, plural: str) -> str:
    """Return the name of a collection as messages spell it: ``pods``, ``jobs.batch``."""
    return f"{plural}.{group}" if group else plural


def bad_request(message: str) -> ApiError:
    """Return the refusal of a request that cannot be read."""
    return ApiError(400, "BadRequest", message)


def not_found(group: str, plural: str, name: str) -> ApiError:
    """Return the refusal for an object that is not there."""
    message = f'{qualified(group, plural)} "{name}" not found'
    return ApiError(404, "NotFound", message, _details(plural, group, name))


def no_such_path() -> ApiError:
    """Return the refusal for a path or a collection that is not served."""
    message = "the server could not find the requested resource"
    return ApiError(404, "NotFound", message, {})


def already_exists(group: str, plural: str, name: str) -> ApiError:
    """Return the refusal to create an object a second time."""
    message = f'{qualified(group, plural)} "{name}" already exists'
    return ApiError(409, "AlreadyExists", message, _details(plural, group, name))


def conflict(group: str, plural: str, name: str, why: str) -> ApiError:
    """Return the refusal of a write that is based on an older state."""
    message = f'Operation cannot be fulfilled on {qualified(group, plural)} "{name}": {why}'
    return ApiError(409, "Conflict", message, _details(plural, group, name))


def forbidden(group: str, plural: str, name: str, why: str) -> ApiError:
    """Return the refusal of a write that no client may make."""
    message = f'{qualified(group, plural)} "{name}" is forbidden: {why}'
    return ApiError(403, "Forbidden", message, _details(plural, group, name))


def method_not_allowed() -> ApiError:
    """Return the refusal of a verb that a collection does not have."""
    return ApiError(
        405, "MethodNotAllowed", "the server does not allow this method on the requested resource"
    )


def gone(message: str) -> ApiError:
    """Return the refusal of a version that is older than the history."""
    return ApiError(410, "Expired", message)


def not_reached(version: int, current: int) -> ApiError:
    """Return the refusal of a read at a version that the store has not reached."""
    message = f"Too large resource version: {version}, current: {current}"
    causes = [{"reason": "ResourceVersionTooLarge", "message": "Too large resource version"}]
    details = {"causes": causes, "retryAfterSeconds": 1}
    return ApiError(504, "Timeout", f"Timeout: {message}", details)


def too_many(message: str, *, retry_after_s: int = 0, cause: Object | None = None) -> ApiError:
    """Return the refusal of a request that may succeed later."""
    details: Object = {}
    if cause is not None:
        details["causes"] = [cause]
    if retry_after_s:
        details["retryAfterSeconds"] = retry_after_s
    return ApiError(429, "TooManyRequests", message, details)


def cause(field: str, reason: str, message: str) -> Object:
    """Return one cause of an invalid object."""
    return {"reason": reason, "message": message, "field": field}


def required(field: str, message: str = "") -> Object:
    """Return the cause of a field that is missing."""
    return cause(field, "FieldValueRequired", f"Required value{': ' if message else ''}{message}")


def invalid_value(field: str, value: object, message: str) -> Object:
    """Return the cause of a field whose value is not allowed."""
    shown = f'"{value}"' if isinstance(value, str) else str(value)
    return cause(field, "FieldValueInvalid", f"Invalid value: {shown}: {message}")


def invalid(kind: str, group: str, name: str, causes: list[Object]) -> ApiError:
    """Return the refusal of an object with all its causes."""
    texts = [f"{problem['field']}: {problem['message']}" for problem in causes]
    listed = texts[0] if len(texts) == 1 else f"[{', '.join(texts)}]"
    message = f'{qualified(group, kind)} "{name}" is invalid: {listed}'
    return ApiError(422, "Invalid", message, {**_details(kind, group, name), "causes": causes})
