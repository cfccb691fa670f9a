"""The two bases of all nouns: a frozen record and a frozen map."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NoReturn, Self, TypeVar, dataclass_transform

import msgspec

K = TypeVar("K")
V = TypeVar("V")


class _KeywordOnly(msgspec.StructMeta):
    """msgspec does not inherit ``kw_only``; without it a default could not precede a must."""

    def __new__(
        mcls, name: str, bases: tuple[type, ...], namespace: dict[str, Any], **options: Any
    ) -> Any:
        return super().__new__(mcls, name, bases, namespace, **{"kw_only": True} | options)


@dataclass_transform(frozen_default=True, kw_only_default=True, field_specifiers=(msgspec.field,))
class Value(
    msgspec.Struct,
    metaclass=_KeywordOnly,
    frozen=True,
    forbid_unknown_fields=True,
    gc=False,
):
    """A record that never changes. ``value.but(field=new)`` gives a changed copy.

    What never changes cannot refer to itself, so the garbage collector need not look at it.

    It is always written with all its fields: equal values have equal bytes, and a journal does not
    change its meaning when a default does.
    """

    def but(self, **changes: Any) -> Self:
        """Return a copy with the given fields changed."""
        return msgspec.structs.replace(self, **changes)


class FrozenMap(dict[K, V]):
    """A dict that refuses to change: reads at full speed, keeps the order of insertion.

    ``MappingProxyType`` would do the same but can neither be pickled nor copied quickly.
    """

    __slots__ = ()

    def _refuse(self, *_args: object, **_kwargs: object) -> NoReturn:
        raise TypeError("a FrozenMap does not change; build a new one")

    __setitem__ = __delitem__ = __ior__ = _refuse
    clear = pop = popitem = setdefault = update = _refuse

    def __reduce__(self) -> tuple[type[Self], tuple[dict[K, V]]]:
        return type(self), (dict(self),)

    def but(self, changes: Mapping[K, V]) -> FrozenMap[K, V]:
        """Return a copy in which ``changes`` are added or replaced."""
        return FrozenMap({**self, **changes})
