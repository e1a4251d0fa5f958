"""Rows that are excluded from learning are listed with the reason."""

from __future__ import annotations

from collections import Counter

from left_out_cases import ROOT, unknown_names

from epochcost.predict.design import Devices
from epochcost.specs.loader import load_catalogue


def test_rows_of_unknown_names_are_counted() -> None:
    """Rows of ambiguous or unknown devices and of unknown decoders are counted by table."""
    catalogue = load_catalogue(ROOT)
    named = unknown_names(catalogue, Devices(catalogue.devices.values()))
    rows = Counter((path.name, kind, name) for path, kind, name in named)
    assert rows["mlperf-training.csv", "device", "A100"] == 5
    assert rows["serving-llm-inference-bench.csv", "device", "sn40l"] == 44
    assert rows["serving-misc.csv", "decoder", "Falcon 40 B"] == 2
    assert "i9_10940x" not in {name for _, _, name in rows}
