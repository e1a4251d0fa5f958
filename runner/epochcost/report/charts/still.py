"""A spec as its static drawing needs it: nothing that answers a reader's pointer.

Nor do its parts speak for themselves: where it is shown it has one label as a whole, and the table
of its data beside it. Vega measures each label again where it could be cut; labels that are too
short for that are not.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

# No common character is wider than its font is high.
_WIDEST = 12


def still(spec: Mapping[str, Any]) -> dict[str, Any]:
    """The spec of layers without selections and tooltips, nothing picked."""
    layers = [{**layer, "encoding": _unpicked(layer["encoding"])} for layer in spec["layer"]]
    kept = {key: value for key, value in spec.items() if key != "params"}
    return {**kept, "layer": layers, "config": _unlimited(spec["config"], _longest(spec))}


def _unpicked(encoding: Mapping[str, Any]) -> dict[str, Any]:
    kept = {channel: value for channel, value in encoding.items() if channel != "tooltip"}
    if "opacity" in kept:
        kept["opacity"] = {"value": kept["opacity"]["condition"]["value"]}
    return kept


def _unlimited(config: Mapping[str, Any], characters: int) -> dict[str, Any]:
    """The config without what speaks, and limits that texts of so many characters do not reach."""
    numbers = {**config["axis"], "labelLimit": 0}
    named = {
        part: {**config[part], "labelLimit": 0}
        for part in ("axisY", "legend")
        if characters * _WIDEST <= config[part]["labelLimit"]
    }
    return {**config, "aria": False, "axis": numbers, **named}


def _longest(spec: Mapping[str, Any]) -> int:
    """The most characters of a text in the data, from which labels and legends take their names."""
    rows = [
        row for part in (spec, *spec["layer"]) for row in part.get("data", {"values": []})["values"]
    ]
    return max(
        (len(text) for row in rows for text in row.values() if isinstance(text, str)), default=0
    )
