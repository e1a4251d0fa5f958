"""Entry point of `python -m epochcost` and of the script `epochcost`.

Signals end the program at once even while it loads its commands, which takes most of a second. If a
signal raised an exception at that time, modules would stay half loaded.
"""

from __future__ import annotations

from epochcost.cli.interruption import end_at_signals


def main() -> None:
    """Load and run the program; while it loads, Ctrl-C, SIGTERM and SIGHUP end it at once."""
    end_at_signals()
    from epochcost.cli.app import main as run_program  # noqa: PLC0415  after the signals

    run_program()


if __name__ == "__main__":
    main()
