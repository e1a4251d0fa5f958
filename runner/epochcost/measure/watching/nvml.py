"""NVIDIA's management library, opened for a while.

A device that answers one question and not another is no error. The library is a parameter: the
module pynvml, or anything that speaks like it.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import Any, TypeVar

import pynvml

AnswerT = TypeVar("AnswerT")
# The bindings have no types; a handle means nothing outside them.
Library = Any
Handle = Any


@contextlib.contextmanager
def opened(library: Library = pynvml) -> Iterator[tuple[Handle, ...]]:
    """Yield the handles of all devices, in the order of the PCI bus.

    Raises ``library.NVMLError`` where there is no driver or it does not answer; one device that is
    lost does not hide the others.
    """
    library.nvmlInit()
    try:
        numbers = range(library.nvmlDeviceGetCount())
        handles = [answer(library, library.nvmlDeviceGetHandleByIndex, one) for one in numbers]
        yield tuple(handle for handle in handles if handle is not None)
    finally:
        with contextlib.suppress(library.NVMLError):
            library.nvmlShutdown()


def answer(library: Library, ask: Callable[..., AnswerT], *arguments: Any) -> AnswerT | None:
    """What the library says, None where it cannot."""
    try:
        return ask(*arguments)
    except library.NVMLError:
        return None


def text(value: str | bytes | None) -> str | None:
    """Older versions of the bindings give bytes."""
    return value.decode(errors="replace") if isinstance(value, bytes) else value
