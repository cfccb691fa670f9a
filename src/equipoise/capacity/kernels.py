"""Numeric kernels: one source that runs as plain Python or compiled by Numba.

Numba needs most of a second to load and, once per machine, some seconds to compile. A small
cluster needs less than that in total, so the caller chooses by the size of the work. Both modes
give the same bits: the compiler is not allowed to reorder arithmetic.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from hashlib import blake2b
from types import FunctionType, SimpleNamespace
from typing import Any, cast

Kernel = Callable[..., Any]


class KernelSet:
    """Functions that call each other, listed callee before caller.

    The functions in ``inline`` are compiled into their callers, which pays where large records are
    passed. If ``entry_points`` are given, only they can be called from Python: the wrappers of the
    others would take most of the compile time.

    With ``allocates`` false, no function makes an array. Then references to arrays are not counted,
    which costs more than half of the time where small functions receive records of arrays.
    """

    def __init__(
        self,
        *functions: Kernel,
        inline: Collection[Kernel] = (),
        entry_points: Collection[Kernel] = (),
        allocates: bool = True,
    ) -> None:
        self._allocates = allocates
        self._inline = {function.__name__ for function in inline}
        self._entry_points = {function.__name__ for function in entry_points or functions}
        self._functions = tuple(cast(FunctionType, function) for function in functions)
        self.plain: Any = SimpleNamespace(
            **{function.__name__: function for function in self._functions}
        )
        """The functions by name, as plain Python."""
        self._fast: Any = None

    def at(self, *, fast: bool) -> Any:
        """Return the functions by name, as plain Python or compiled."""
        return self.fast if fast else self.plain

    @property
    def fast(self) -> Any:
        """The compiled functions; the first access compiles them."""
        if self._fast is None:
            self._fast = SimpleNamespace(**self._compile())
        return self._fast

    def _compile(self) -> dict[str, Any]:
        import numba  # noqa: PLC0415  (loading takes half a second, too long for small work)

        compiled: dict[str, Any] = {}
        # Numba finds cached code by name. The digest in the name makes it stale after any change.
        digest = blake2b(
            repr((sorted(self._inline), sorted(self._entry_points), self._allocates)).encode(),
            digest_size=6,
        )
        for function in self._functions:
            # One digest over all functions so far: a caller is compiled again with its callees.
            digest.update(repr(_fingerprint(function)).encode())
            # A twin sees the compiled callees; the function itself stays plain for the other mode.
            twin = FunctionType(
                function.__code__, {**function.__globals__, **compiled}, function.__name__
            )
            twin.__module__ = function.__module__
            twin.__qualname__ = f"{function.__qualname__}_{digest.hexdigest()}"
            options: dict[str, Any] = {
                "forceinline": function.__name__ in self._inline,
                "no_cpython_wrapper": function.__name__ not in self._entry_points,
                "no_cfunc_wrapper": True,
                "_nrt": self._allocates,
            }
            try:
                compiled[function.__name__] = numba.njit(cache=True, **options)(twin)
            except RuntimeError:  # no writable cache directory
                compiled[function.__name__] = numba.njit(**options)(twin)
        return compiled


def _fingerprint(function: FunctionType) -> tuple[object, ...]:
    """Return what determines the result of a function: its code and the constants it reads."""
    code, namespace = function.__code__, function.__globals__
    named = [(name, namespace[name]) for name in code.co_names if name in namespace]
    constants = [
        (name, constant)
        for name, constant in named
        if isinstance(constant, bool | int | float | str)
    ]
    return code.co_code, code.co_consts, constants
