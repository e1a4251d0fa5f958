"""Handle signals that end a run: Ctrl-C, a machine's shutdown notice, a lost connection."""

from __future__ import annotations

import contextlib
import os
import signal
import sys
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from sys import UnraisableHookArgs

INTERRUPTED = 130
_ENDINGS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


def end_at_signals() -> None:
    """Let a signal end the process at once from now on, with the exit code of an interruption."""
    _set_handlers(_end)


def _end(*_: object) -> None:
    os.write(2, b"interrupted\n")
    os._exit(INTERRUPTED)


@contextlib.contextmanager
def ended_by_signals() -> Iterator[None]:
    """Let SIGINT, SIGTERM and SIGHUP end the process at once in the block, without an exception.

    The block may import modules, and an exception would leave a module half loaded.
    """
    with _signals_handled_by(_end):
        yield


@contextlib.contextmanager
def interrupted_by_signals() -> Iterator[Callable[[], None]]:
    """Let the signals SIGINT, SIGTERM and SIGHUP raise KeyboardInterrupt in the block.

    The exception may get lost: Python discards it in a destructor, and Pydantic may call a stored
    result invalid instead. So the block gets a function that raises KeyboardInterrupt if a signal
    has come. Call the function before writing anything that depends on stored results. Ignored
    signals (nohup) stay ignored.
    """
    heard: list[int] = []

    def hear(number: int, _frame: object) -> None:
        heard.append(number)
        raise KeyboardInterrupt

    def require_no_signal() -> None:
        if heard:
            raise KeyboardInterrupt

    with _signals_handled_by(hear), _without_lost_interrupt_messages():
        yield require_no_signal
    require_no_signal()


@contextlib.contextmanager
def noted_signals() -> Iterator[Callable[[], bool]]:
    """Yield a function that says if a signal came; a second signal raises KeyboardInterrupt."""
    heard: list[int] = []

    def note(number: int, _frame: object) -> None:
        if heard:
            raise KeyboardInterrupt
        heard.append(number)

    with _signals_handled_by(note):
        yield lambda: bool(heard)


@contextlib.contextmanager
def _signals_handled_by(handler: Callable[..., None]) -> Iterator[None]:
    before = _set_handlers(handler)
    try:
        yield
    finally:
        for number, old in before.items():
            signal.signal(number, old)


def _set_handlers(handler: Callable[..., None]) -> dict[int, Any]:
    """Handle ``_ENDINGS``, except signals that are ignored (nohup); return the old handlers."""
    handlers = {number: signal.getsignal(number) for number in _ENDINGS}
    heeded = [number for number in _ENDINGS if handlers[number] is not signal.SIG_IGN]
    for number in heeded:
        signal.signal(number, handler)
    return {number: handlers[number] for number in heeded}


@contextlib.contextmanager
def _without_lost_interrupt_messages() -> Iterator[None]:
    # Through this hook, Python prints the exceptions that it loses, such as in a destructor.
    before = sys.unraisablehook

    def show(lost: UnraisableHookArgs) -> None:
        if not issubclass(lost.exc_type, KeyboardInterrupt):
            before(lost)

    sys.unraisablehook = show
    try:
        yield
    finally:
        sys.unraisablehook = before
