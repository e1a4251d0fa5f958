"""The table of engines, by the name in a target's spec."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib import import_module
from pathlib import Path
from types import MappingProxyType
from typing import cast

from epochcost.fleet.engine import Engine
from epochcost.specs.target import Target

# Makes an engine of a target, the folder of `payload.build_payload` and the project's folder.
Constructor = Callable[[Target, Path, Path], Engine]
# Each engine's module and class; modules are imported when a target needs them.
ENGINES: Mapping[str, tuple[str, str]] = MappingProxyType(
    {
        "ssh": ("epochcost.fleet.ssh", "SshEngine"),
        "slurm": ("epochcost.fleet.slurm", "SlurmEngine"),
        "sky": ("epochcost.fleet.sky", "SkyEngine"),
    }
)


def engine_of(target: Target, payload: Path, root: Path) -> Engine:
    """Make the engine of a target; raises EngineError if its packages are missing here."""
    module, name = ENGINES[target.engine.name]
    constructor = cast(Constructor, getattr(import_module(module), name))
    return constructor(target, payload, root)
