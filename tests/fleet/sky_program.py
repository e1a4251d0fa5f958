"""A made-up program `sky`: it stores its machines in a file and prints what SkyPilot 0.14.1 prints.

The file `sky.json` in the folder of the environment variable SKY_STATE has the `machines` by name,
the `clouds` with access, the `offers` of accelerators, and by command a message in `faults`; with
the message "ignored" the command does nothing and succeeds.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

STATE = Path(os.environ["SKY_STATE"], "sky.json")


def launch(state: dict[str, Any], _option: str, name: str, *rest: str) -> None:
    """Start a machine as the task in the last argument says."""
    ends = json.loads(Path(rest[-1]).read_text())["resources"]["autostop"]
    machine = {"name": name, "status": "UP", "autostop": ends["idle_minutes"]}
    state["machines"][name] = machine | {"to_down": ends["down"]}


def autostop(state: dict[str, Any], name: str, _option: str, minutes: str, *rest: str) -> None:
    """Set the end of a machine; does nothing if there is none."""
    if name in state["machines"]:
        state["machines"][name] |= {"autostop": int(minutes), "to_down": "--down" in rest}


def down(state: dict[str, Any], name: str, *_rest: str) -> None:
    """End a machine."""
    state["machines"].pop(name, None)


def status(state: dict[str, Any], name: str, *_rest: str) -> None:
    """Print a machine."""
    machine = state["machines"].get(name)
    if machine is None:
        sys.stdout.write(f"Cluster(s) not found: \x1b[1m{name}\x1b[0m.\n")
    sys.stdout.write(json.dumps([machine] if machine else [], indent=2))


def check(state: dict[str, Any], cloud: str, *_rest: str) -> None:
    """Print whether there is access to a cloud."""
    access = {cloud: ["compute"]} if cloud in state["clouds"] else {}
    sys.stdout.write(json.dumps({"default": access}, indent=2))


def gpus(state: dict[str, Any], _action: str, accelerators: str, *_rest: str) -> None:
    """Print the offers of an accelerator."""
    sys.stdout.write(json.dumps({accelerators.partition(":")[0]: state["offers"]}, indent=2))


if __name__ == "__main__":
    stored = json.loads(STATE.read_text())
    name, *options = sys.argv[1:]
    fault = stored["faults"].get(name, "")
    if fault not in ("", "ignored"):
        sys.exit(f"\x1b[31m{fault}\x1b[0m")
    if not fault:
        {each.__name__: each for each in (launch, autostop, down, status, check, gpus)}[name](
            stored, *options
        )
        STATE.write_text(json.dumps(stored))
