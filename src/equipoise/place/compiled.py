"""One source, two speeds: numeric kernels run as plain Python, or compiled to machine code.

Numba takes most of a second to wake up and, once on each machine, some seconds to compile. That
is more than a small cluster needs in all, so whoever runs a kernel chooses by the size of the work.
Both speeds give the same bits: the compiler is not allowed to reorder arithmetic.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from hashlib import blake2b
from types import FunctionType, SimpleNamespace
from typing import Any, cast

Kernel = Callable[..., Any]


class Kernels:
    """Functions that call each other, callee before caller.

    Those in ``inline`` become part of their callers: worth it where large records are handed on.
    Only those in ``doors`` can be called from outside, if any are named: making all callable
    would take most of the time.
    """

    def __init__(
        self, *functions: Kernel, inline: Collection[Kernel] = (), doors: Collection[Kernel] = ()
    ) -> None:
        self._inline = {function.__name__ for function in inline}
        self._doors = {function.__name__ for function in doors or functions}
        self._functions = tuple(cast(FunctionType, function) for function in functions)
        self.plain: Any = SimpleNamespace(**{one.__name__: one for one in self._functions})
        """The functions by their names, as plain Python."""
        self._fast: Any = None

    def at(self, *, fast: bool) -> Any:
        """The functions by their names, as plain Python or compiled."""
        return self.fast if fast else self.plain

    @property
    def fast(self) -> Any:
        """The compiled functions; the first who asks waits for it."""
        if self._fast is None:
            self._fast = SimpleNamespace(**self._compile())
        return self._fast

    def _compile(self) -> dict[str, Any]:
        import numba  # noqa: PLC0415  (half a second that small work does not pay)

        compiled: dict[str, Any] = {}
        # What was compiled earlier is found by name, and must not be found after any change.
        digest = blake2b(repr((sorted(self._inline), sorted(self._doors))).encode(), digest_size=6)
        for function in self._functions:
            digest.update(repr(_essence(function)).encode())
            twin = FunctionType(
                function.__code__, {**function.__globals__, **compiled}, function.__name__
            )
            twin.__module__ = function.__module__
            twin.__qualname__ = f"{function.__qualname__}_{digest.hexdigest()}"
            options: dict[str, Any] = {
                "forceinline": function.__name__ in self._inline,
                "no_cpython_wrapper": function.__name__ not in self._doors,
                "no_cfunc_wrapper": True,
            }
            try:
                compiled[function.__name__] = numba.njit(cache=True, **options)(twin)
            except RuntimeError:  # nowhere to keep it: neither beside the source nor at home
                compiled[function.__name__] = numba.njit(**options)(twin)
        return compiled


def _essence(function: FunctionType) -> tuple[object, ...]:
    """All that a function does by itself: its code, and the constants it names."""
    code, around = function.__code__, function.__globals__
    named = [(name, around[name]) for name in code.co_names if name in around]
    constants = [(name, one) for name, one in named if isinstance(one, bool | int | float | str)]
    return code.co_code, code.co_consts, constants
