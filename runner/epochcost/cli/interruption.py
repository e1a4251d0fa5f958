"""Signals that end a run: Ctrl-C, a machine's notice that it ends, a lost connection.

Commands decide what they then print and keep.
"""

from __future__ import annotations

import contextlib
import os
import signal
import sys
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sys import UnraisableHookArgs

INTERRUPTED = 130
_ENDINGS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


def end_at_signals() -> None:
    """Let each signal end the process at once from here on, with the exit code for it."""
    for number in _ENDINGS:
        if signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, _end)


def _end(*_: object) -> None:
    os.write(2, b"interrupted\n")
    os._exit(INTERRUPTED)


class Interruption:
    """Whether a signal has come; each raises KeyboardInterrupt where it meets the program.

    It may meet it where no exception goes further: in a destructor, or in a conversion of pydantic,
    which then takes the value, and with it a stored result, for invalid. So whoever goes on has to
    ask again, before anything is written that follows from what was read.
    """

    def __init__(self) -> None:
        self._heard = False

    def hear(self, *_: object) -> None:
        """Note a signal and raise KeyboardInterrupt."""
        self._heard = True
        raise KeyboardInterrupt

    def require_none(self) -> None:
        """Raise KeyboardInterrupt if a signal has come before."""
        if self._heard:
            raise KeyboardInterrupt


@contextlib.contextmanager
def interrupted_by_signals() -> Iterator[Interruption]:
    """Give what hears the signals inside, and raises KeyboardInterrupt at the end for a lost one.

    A signal that the caller has switched off (nohup) stays off.
    """
    interruption = Interruption()
    with _handled_by(interruption.hear), _quiet_when_lost():
        yield interruption
    interruption.require_none()


@contextlib.contextmanager
def noted_signals() -> Iterator[Callable[[], bool]]:
    """Give what says whether a signal came, which interrupts nothing; a second one does."""
    heard: list[int] = []

    def note(number: int, _frame: object) -> None:
        if heard:
            raise KeyboardInterrupt
        heard.append(number)

    with _handled_by(note):
        yield lambda: bool(heard)


@contextlib.contextmanager
def _handled_by(handler: Callable[..., None]) -> Iterator[None]:
    """Hand the signals to a handler, but for those that the caller has switched off (nohup)."""
    before = {number: signal.getsignal(number) for number in _ENDINGS}
    heeded = [number for number in _ENDINGS if before[number] is not signal.SIG_IGN]
    for number in heeded:
        signal.signal(number, handler)
    try:
        yield
    finally:
        for number in heeded:
            signal.signal(number, before[number])


@contextlib.contextmanager
def _quiet_when_lost() -> Iterator[None]:
    """Show nobody the traceback of an interruption that went no further: it is raised again."""
    before = sys.unraisablehook

    def show(lost: UnraisableHookArgs) -> None:
        if not issubclass(lost.exc_type, KeyboardInterrupt):
            before(lost)

    sys.unraisablehook = show
    try:
        yield
    finally:
        sys.unraisablehook = before
