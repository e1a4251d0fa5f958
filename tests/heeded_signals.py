"""Programs that heed signals, however the tests themselves were started."""

from __future__ import annotations

import contextlib
import signal
from collections.abc import Iterator

_DEFAULTS = {signal.SIGINT: signal.default_int_handler, signal.SIGHUP: signal.SIG_DFL}


@contextlib.contextmanager
def heeded_signals() -> Iterator[None]:
    """What is started inside heeds SIGINT and SIGHUP.

    ``nohup``, and a shell's background without job control, have them ignored, which is inherited.
    """
    ignored = [number for number in _DEFAULTS if signal.getsignal(number) is signal.SIG_IGN]
    for number in ignored:
        signal.signal(number, _DEFAULTS[number])
    try:
        yield
    finally:
        for number in ignored:
            signal.signal(number, signal.SIG_IGN)
