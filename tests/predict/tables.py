"""Synthetic devices and tables of rates that follow a known law."""

from __future__ import annotations

import csv
import math
import random
from decimal import Decimal
from pathlib import Path

from epochcost.graphs.profile import Profile
from epochcost.predict.design import Devices
from epochcost.predict.rates import COLUMNS
from epochcost.specs.hardware import Device

# Peak in TFLOP/s and bandwidth in GB/s, by generation: two chips in each of four.
FACTS = {
    "A1": ("Alpha", 10, 300), "A2": ("Alpha", 18, 700),
    "B1": ("Beta", 15, 400), "B2": ("Beta", 30, 900),
    "C1": ("Gamma", 30, 600), "C2": ("Gamma", 60, 2000),
    "D1": ("Delta", 40, 800), "D2": ("Delta", 80, 3000),
}  # fmt: skip
# Share of arithmetic in each model's time: 1 for arithmetic only, 0 for bandwidth only.
MODELS = {"dense": 0.9, "mixed": 0.6, "light": 0.4, "sparse": 0.2, "thin": 0.5, "wide": 0.7}


def devices() -> tuple[Device, ...]:
    """The eight devices of ``FACTS``."""
    return tuple(
        Device(
            id=chip.lower(),
            name=chip,
            chip=chip,
            generation=generation,
            spellings=(f"Maker {chip}",),
            memory_gib=Decimal(16),
            memory_gb_per_second=Decimal(bandwidth),
            peak_fp32_tflops=Decimal(peak),
            source="made up",
        )
        for chip, (generation, peak, bandwidth) in FACTS.items()
    )


KNOWN = Devices(devices())
# Larger works have lower rates, like the levels of the synthetic law.
PROFILES = {
    (model, ""): Profile(1e9 / level, 5e8 / level, 1e6 / level, 0, 1e6 / level, 10**6, 50)
    for level, model in enumerate(sorted(MODELS), 1)
}


def true_rate(model: str, chip: str) -> float:
    """Examples a second, without noise: a geometric mean of the rates by peak and bandwidth."""
    _, peak, bandwidth = FACTS[chip]
    share = MODELS[model]
    level = 10 * (1 + sorted(MODELS).index(model))
    return level * peak**share * (bandwidth / 30) ** (1 - share)


def rows(noise: float = 0.03, seed: int = 0) -> list[dict[str, str]]:
    """Every model on every device, as table rows."""
    drawn = random.Random(seed)
    return [
        row(model, f"Maker {chip}", true_rate(model, chip) * math.exp(drawn.gauss(0, noise)))
        for model in MODELS
        for chip in FACTS
    ]


def row(model: str, accelerator: str, value: float, **cells: str) -> dict[str, str]:
    """A table row; columns that are not given are empty."""
    columns = {
        "source": "made up",
        "model": model,
        "mode": "infer",
        "precision": "fp32",
        "software": "plain",
        "accelerator": accelerator,
        "count": "1",
        "value": repr(value),
        "unit": "samples/s",
        "licence": "CC0-1.0",
    }
    return dict.fromkeys(COLUMNS, "") | columns | cells


def write(path: Path, table: list[dict[str, str]]) -> Path:
    """Write ``table`` as a CSV file."""
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, COLUMNS, lineterminator="\n")
        writer.writeheader()
        writer.writerows(table)
    return path
