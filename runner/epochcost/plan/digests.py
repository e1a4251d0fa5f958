"""Digests that identify a trial's work: of the ONNX file, of the working part of a model's spec.

Reading the files is kept here, at the edge, so that planning itself is pure.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from typing import Any

from epochcost.errors import ModelError
from epochcost.specs.catalogue import Catalogue
from epochcost.specs.model import Model
from epochcost.specs.study import Mode
from epochcost.units import plain

# All else in [training] is work: a key added later counts until it is named here.
_NOT_OF_A_STEP = {"batch_sizes", "examples_per_epoch", "epochs", "augmentation"}


def graph_digests(catalogue: Catalogue, models: Iterable[str]) -> Mapping[str, str]:
    """SHA-256 of each model's ONNX file, by model id; raises ModelError where one is unreadable."""
    chosen = [catalogue.models[name] for name in sorted(models)]
    return {model.id: _graph_sha256(catalogue, model) for model in chosen if model.graph}


def _graph_sha256(catalogue: Catalogue, model: Model) -> str:
    path = catalogue.graph_path(model)
    try:
        return hashlib.sha256(path.read_bytes()).hexdigest()
    except OSError as error:
        raise ModelError(
            f"{path}: expected the ONNX file that the model {model.id} names, "
            f"got {error.strerror or error}; export it, or correct `graph` in the model's spec"
        ) from None


def work_sha256(model: Model, mode: Mode) -> str:
    """SHA-256 of what the spec says about the work itself.

    Names, notes, sources, the list of batch sizes, the length of epoch and training and what only
    real data see are left out, as is the order of what has none, and 1 is 1.0: editing them leaves
    stored measurements valid.
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
