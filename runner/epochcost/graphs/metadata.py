"""Parameters and state as a weightless file's metadata lists them: JSON, checked to the last value.

    epochcost.parameters = {"dense1.weight": {"distribution": "uniform", "scale": 0.06, "seed": 0}}
    epochcost.state = {"norm1.running_var": {"distribution": "constant", "scale": 1, "seed": 1}}

Whether a list agrees with the graph is checked in ``parameters``.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import onnx

from epochcost.errors import ModelError
from epochcost.graphs.initial import DISTRIBUTIONS, Initial
from epochcost.graphs.tensors import one_line

METADATA_KEY = "epochcost.parameters"
STATE_KEY = "epochcost.state"
# Far above any initial value in use, and low enough that 6 standard deviations stay within the
# 65504 of float16.
MAX_SCALE = 10_000.0
_KEYS = {"distribution", "scale", "seed"}


def listed_parameters(model: onnx.ModelProto) -> Mapping[str, Initial] | None:
    """The parameters that the metadata lists by name; None when the file is an ordinary one.

    Raises ModelError when the list is not as the module's docstring shows it.
    """
    return _listed(model, METADATA_KEY)


def listed_state(model: onnx.ModelProto) -> Mapping[str, Initial]:
    """The running statistics that the metadata lists by name; ModelError as for parameters."""
    return _listed(model, STATE_KEY) or {}


def _listed(model: onnx.ModelProto, key: str) -> Mapping[str, Initial] | None:
    texts = [entry.value for entry in model.metadata_props if entry.key == key]
    if not texts:
        return None
    listed = _parse(key, texts[-1])
    if not isinstance(listed, dict):
        raise ModelError(f"{key}: demanded a JSON object by name; got {listed!r:.80}")
    return {name: _initial(f"{key}: {name!r}", entry) for name, entry in listed.items()}


def _parse(key: str, text: str) -> Any:
    try:
        return json.loads(text, object_pairs_hook=lambda pairs: _unique(key, pairs))
    except (ValueError, RecursionError) as error:
        raise ModelError(f"{key}: demanded JSON; {one_line(error)}") from None


def _unique(key: str, pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    entries = dict(pairs)
    if len(entries) != len(pairs):
        raise ModelError(f"{key}: a name stands twice in {sorted(k for k, _ in pairs)}")
    return entries


def _initial(where: str, entry: Any) -> Initial:
    if not isinstance(entry, dict) or entry.keys() != _KEYS:
        raise ModelError(f"{where}: demanded distribution, scale and seed; got {entry!r:.80}")
    distribution, scale, seed = entry["distribution"], entry["scale"], entry["seed"]
    if not isinstance(distribution, str) or distribution not in DISTRIBUTIONS:
        choices = ", ".join(DISTRIBUTIONS)
        raise ModelError(f"{where}: distribution: demanded {choices}; got {distribution!r:.80}")
    if not _is_scale(scale):
        raise ModelError(
            f"{where}: scale: demanded a number within ±{MAX_SCALE:g}; got {scale!r:.80}"
        )
    if type(seed) is not int or not 0 <= seed < 2**64:
        raise ModelError(
            f"{where}: seed: demanded an integer from 0 to 2**64 - 1; got {seed!r:.80}"
        )
    return Initial(distribution, float(scale), seed)


def _is_scale(scale: Any) -> bool:
    return type(scale) in (int, float) and abs(scale) <= MAX_SCALE  # false for NaN
