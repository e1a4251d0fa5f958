"""Entry point of `python -m epochcost` and of the script `epochcost`.

Signals end the program even while it loads its commands, which takes most of a second. An exception
at that time would leave modules half loaded.
"""

from __future__ import annotations

from epochcost.cli.interruption import end_at_signals


def main() -> None:
    """End the program at Ctrl-C, SIGTERM and SIGHUP from now on, then load and run it."""
    end_at_signals()
    from epochcost.cli.app import main as run_program  # noqa: PLC0415  after the signals

    run_program()


if __name__ == "__main__":
    main()
