"""`python -m epochcost`, and the `epochcost` script: signals end it as later while it still loads.

Loading the commands takes most of a second, in which an exception would meet half a module.
"""

from __future__ import annotations

from epochcost.cli.interruption import end_at_signals


def main() -> None:
    """Load the program and run it; Ctrl-C, SIGTERM and SIGHUP before that are its end."""
    end_at_signals()
    from epochcost.cli.app import main as run_program  # noqa: PLC0415  after the signals

    run_program()


if __name__ == "__main__":
    main()
