"""`python -m epochcost`, and the `epochcost` script: signals end it as later while it still loads.

Loading the commands takes most of a second, in which an exception would meet half a module.
"""

from __future__ import annotations

import os
import signal

_INTERRUPTED = 130


def main() -> None:
    """Load the program and run it; Ctrl-C, SIGTERM and SIGHUP before that are its end."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        if signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, _end)
    from epochcost.cli.app import main as run_program  # noqa: PLC0415  after the signals

    run_program()


def _end(*_: object) -> None:
    os.write(2, b"interrupted\n")
    os._exit(_INTERRUPTED)


if __name__ == "__main__":
    main()
