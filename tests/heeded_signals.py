"""Lets programs that a test starts react to signals, however the tests were started."""

from __future__ import annotations

import contextlib
import signal
from collections.abc import Iterator

_DEFAULTS = {signal.SIGINT: signal.default_int_handler, signal.SIGHUP: signal.SIG_DFL}


@contextlib.contextmanager
def heeded_signals() -> Iterator[None]:
    """Processes that start in this context react to SIGINT and SIGHUP.

    ``nohup`` and background jobs of a shell ignore these signals, and child processes inherit this.
    """
    ignored = [number for number in _DEFAULTS if signal.getsignal(number) is signal.SIG_IGN]
    for number in ignored:
        signal.signal(number, _DEFAULTS[number])
    try:
        yield
    finally:
        for number in ignored:
            signal.signal(number, signal.SIG_IGN)
