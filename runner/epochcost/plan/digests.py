"""Digests of an ONNX file, and of the keys of a spec that change what a trial computes."""

from __future__ import annotations

import hashlib
import json
from typing import Any

from epochcost.errors import ModelError
from epochcost.specs.catalogue import Catalogue
from epochcost.specs.model import Model
from epochcost.specs.study import Mode
from epochcost.units import plain

# Keys of [training] that do not change a step; all other keys are part of the work.
_NOT_OF_A_STEP = {"batch_sizes", "examples_per_epoch", "epochs", "augmentation"}


def graph_sha256(catalogue: Catalogue, name: str) -> str:
    """SHA-256 of a model's ONNX file, "" without one; raises ModelError if it is unreadable."""
    model = catalogue.models[name]
    if model.graph is None:
        return ""
    path = catalogue.graph_path(model)
    try:
        return hashlib.sha256(path.read_bytes()).hexdigest()
    except OSError as error:
        raise ModelError(
            f"{path}: expected the ONNX file that the model {model.id} names, "
            f"got {error.strerror or error}; export it, or correct `graph` in the model's spec"
        ) from None


def work_sha256(model: Model, mode: Mode) -> str:
    """SHA-256 of the part of a model's spec that decides what a trial computes.

    The digest is the same for 1 and 1.0, and for any order of entries if the order has no effect.
    """
    work: dict[str, Any] = {
        "inputs": {declared.name: declared.model_dump() for declared in model.fed},
        "dimensions": dict(model.dimensions),
        "carried": {state.input: state.output for state in model.states},
    }
    if mode == "training" and model.training is not None:
        training = model.training
        work["training"] = training.model_dump(exclude=_NOT_OF_A_STEP) | {
            "no_weight_decay": sorted(training.no_weight_decay),
            "freeze": sorted(training.freeze),
        }
    return hashlib.sha256(json.dumps(work, sort_keys=True, default=plain).encode()).hexdigest()
