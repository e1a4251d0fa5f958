"""Specs become SVG, compiled by Vega-Lite once for all charts that differ in nothing it looks at.

It looks at no data, and hands on as they are the domains of scales and the values on axes. So names
are compiled in their place, and Vega is given what each chart has for them.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any

import vl_convert

# No text of a chart begins so.
_GIVEN, _DATA = "ec_given_", "ec_data_"
Spec = dict[str, Any]


def svg(spec: Spec) -> str:
    """The drawing of a spec in Vega-Lite that has neither parameters nor selections."""
    given: dict[str, Any] = {}
    kind = _kind(json.dumps(_named(spec, given)))
    kind.met += 1
    # Compiled by itself, a chart that stays the only one of its kind takes longer.
    if kind.met == 1 or kind.template is None:
        return vl_convert.vegalite_to_svg(spec)
    return vl_convert.vega_to_svg(_filled(kind.template, given))


@dataclass
class _Kind:
    """Charts of one shape, and how many were met."""

    shape: str
    met: int = 0

    @cached_property
    def template(self) -> Spec | None:
        """What the shape is compiled to; None where a name is more than handed on."""
        compiled: Spec = vl_convert.vegalite_to_vega(json.loads(self.shape))
        names = {one["name"]: None for one in compiled.get("signals", [])}
        filled = _filled(compiled, names)
        return None if _GIVEN in json.dumps(filled) else compiled


@lru_cache(maxsize=256)
def _kind(shape: str) -> _Kind:
    return _Kind(shape)


def _named(spec: Spec, given: dict[str, Any]) -> Spec:
    """The spec with names, ``given`` what they stand for."""
    shape = {key: _part(key, value, given) for key, value in spec.items() if key != "description"}
    names = [name for name in given if name.startswith(_GIVEN)]
    return {**shape, "params": [{"name": name, "value": 0} for name in names]}


def _part(key: str, value: Any, given: dict[str, Any]) -> Any:
    if key == "data":
        return {"name": _name(value["values"], given, _DATA)}
    if key == "domain" and isinstance(value, list):
        plain = all(isinstance(bound, int | float | str) for bound in value)
        return [{"expr": _name(bound, given)} for bound in value] if plain else value
    if key == "values" and isinstance(value, list):
        return {"expr": _name(value, given)}
    if isinstance(value, Mapping) and key != "config":
        return {inner: _part(inner, part, given) for inner, part in value.items()}
    return [_part("", part, given) for part in value] if isinstance(value, list) else value


def _name(value: Any, given: dict[str, Any], prefix: str = _GIVEN) -> str:
    """A name; equal values share theirs, for Vega-Lite joins scales that are equal."""
    for name, other in given.items():
        if name.startswith(prefix) and type(other) is type(value) and other == value:
            return name
    name = f"{prefix}{len(given)}"
    given[name] = value
    return name


def _filled(compiled: Spec, given: Mapping[str, Any]) -> Spec:
    """What was compiled with what the names stand for."""
    data = [
        {**one, "values": given[one["name"]]} if one["name"] in given else one
        for one in compiled["data"]
    ]
    rest = [one for one in compiled.get("signals", []) if one["name"] not in given]
    parts = {key: _put(value, given) for key, value in compiled.items()}
    return {**parts, "data": data, "signals": _put(rest, given)}


def _put(part: Any, given: Mapping[str, Any]) -> Any:
    if isinstance(part, Mapping):
        if part.keys() == {"signal"} and part["signal"] in given:
            return given[part["signal"]]
        return {key: _put(value, given) for key, value in part.items()}
    return [_put(value, given) for value in part] if isinstance(part, list) else part
