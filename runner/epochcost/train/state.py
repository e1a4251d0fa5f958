"""Write and read the state of a training, and export its weights.

The file is a zip of arrays and JSON, with everything on which the next step depends.
"""

from __future__ import annotations

import hashlib
import io
import json
import zipfile
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from numpy.typing import NDArray
from pydantic import TypeAdapter, ValidationError

from epochcost.errors import CapabilityError, InputError
from epochcost.measure.session import with_stored_type
from epochcost.results.files import is_full, write_atomically
from epochcost.results.trainings import Ending, Point
from onnxstep.graphs.exported import separated
from onnxstep.graphs.initial import METADATA_KEY, STATE_KEY
from onnxstep.graphs.nodes import copied
from onnxstep.graphs.parameters import parameters, state


@dataclass(frozen=True)
class Times:
    """The seconds of a training's activities; ``steps`` includes ``waiting`` for data."""

    steps: float = 0.0
    waiting: float = 0.0
    evaluation: float = 0.0
    saving: float = 0.0

    @property
    def total(self) -> float:
        """Seconds of steps, evaluations and saving, all of which are billed."""
        return self.steps + self.evaluation + self.saving


@dataclass(frozen=True)
class Progress:
    """The progress of a training and its results so far, which a saved state stores as JSON.

    ``losses`` has the sum of the losses of the steps since the last evaluation, and the number of
    these steps. ``sessions`` counts how often the training was started or resumed.
    """

    step: int = 0
    curve: tuple[Point, ...] = ()
    losses: tuple[float, int] = (0.0, 0)
    times: Times = field(default_factory=Times)
    sessions: int = 0
    ending: Ending | None = None

    def spent(self, **more: float) -> Progress:
        """A copy with seconds added to fields of ``times``, such as ``saving=2.5``."""
        added = {name: getattr(self.times, name) + seconds for name, seconds in more.items()}
        return replace(self, times=replace(self.times, **added))


@dataclass(frozen=True)
class SavedState:
    """A training's state between two steps; ``identity`` names the training and its host."""

    identity: str
    progress: Progress
    values: Mapping[str, NDArray[Any]]


_PROGRESS = TypeAdapter(Progress)
# Errors of reading damaged files; RuntimeError is raised for an unknown form of zip.
_DAMAGES = (OSError, EOFError, KeyError, RuntimeError, TypeError, ValueError, zipfile.BadZipFile)


def write_state(path: Path, state: SavedState) -> None:
    """Replace the saved state; if that fails, keep the earlier one and raise CapabilityError."""
    buffer = io.BytesIO()
    document = {
        "identity": state.identity,
        "progress": json.loads(_PROGRESS.dump_json(state.progress)),
        "arrays": list(state.values),
    }
    arrays = {str(number): values for number, values in enumerate(state.values.values())}
    np.savez(buffer, allow_pickle=False, document=np.array(json.dumps(document)), **arrays)
    write_atomically(path, buffer.getvalue(), refusal)


def read_state(path: Path, identity: str) -> SavedState | None:
    """The saved state, if any; raises InputError if it is damaged or another training's."""
    try:
        with np.load(path, allow_pickle=False) as archive:
            document = json.loads(str(archive["document"]))
            if document["identity"] != identity:
                raise ValueError(
                    "that of another model, data set, seed, recipe, machine or runtime"
                )
            arrays = {
                name: with_stored_type(archive[str(number)])
                for number, name in enumerate(document["arrays"])
            }
        progress = _PROGRESS.validate_json(json.dumps(document["progress"]))
    except FileNotFoundError:
        return None
    except _DAMAGES as error:
        reason = "another format" if isinstance(error, ValidationError) else error
        raise InputError(
            f"{path}: expected the saved state of this training, got {reason}: "
            "remove the file to begin again"
        ) from None
    return SavedState(identity, progress, arrays)


def digest(values: Mapping[str, NDArray[Any]]) -> str:
    """SHA-256 of the names, types, shapes and contents of arrays."""
    sha256 = hashlib.sha256()
    for name, value in sorted(values.items()):
        sha256.update(json.dumps([name, str(value.dtype), value.shape]).encode())
        sha256.update(np.ascontiguousarray(value).tobytes())
    return sha256.hexdigest()


def refusal(folder: Path, error: OSError) -> CapabilityError:
    """Make the error for a training whose files cannot be written to ``folder``."""
    expected, remedy = "a folder that takes", "make the folder writable"
    if is_full(error):
        expected, remedy = "room for", "make room"
    return CapabilityError(
        f"{folder}: expected {expected} the saved state of a training, got "
        f"{error.strerror or error}: the state saved before is kept; {remedy} and run the same "
        "command again to go on"
    )


def with_values(model: onnx.ModelProto, values: Mapping[str, NDArray[Any]]) -> onnx.ModelProto:
    """Copy a model with ``values`` as initializers of all parameters and running statistics."""
    stored = copied(separated(model))
    weights = {each.name for each in (*parameters(stored), *state(stored))}
    graph = stored.graph
    for places in (graph.input, graph.initializer):
        inputs = [place for place in places if place.name not in weights]
        del places[:]
        places.extend(inputs)
    graph.initializer.extend(
        onnx.numpy_helper.from_array(values[name], name) for name in sorted(weights)
    )
    lists = {METADATA_KEY, STATE_KEY}
    metadata = {entry.key: entry.value for entry in stored.metadata_props if entry.key not in lists}
    onnx.helper.set_model_props(stored, metadata)
    return stored
