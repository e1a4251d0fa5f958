"""`benchmarks/token_prediction.py` with tables of others: any columns, unknown chips."""

from __future__ import annotations

import csv
import json
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
_ROW = {
    "source": "test", "date": "2026-06-02", "model": "Llama-3.1-8B-Instruct", "mode": "infer",
    "task": "", "precision": "bf16", "batch": "1", "sequence_or_image": "",
    "software": "vLLM 0.22.1", "accelerator": "NVIDIA L40S", "count": "1", "machine": "",
    "metric": "decode throughput", "value": "45", "unit": "tokens/s", "file": "", "licence": "MIT",
    "input_tokens": "256", "output_tokens": "128", "chip": "l40s", "note": "", "colour": "red",
}  # fmt: skip


@pytest.mark.slow
def test_a_table_of_others_is_predicted_without_its_chips(tmp_path: Path) -> None:
    """A table with more columns than ours is read; rows of an unknown chip are named and left out.

    A table of the project has no column for what its spec says of all rows.
    """
    table = tmp_path / "others.csv"
    with table.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, list(_ROW))
        writer.writeheader()
        writer.writerows([_ROW, _ROW | {"chip": "h900"}])
    ours = ROOT / "specs/observations/serving-gpustack.csv"
    command = [sys.executable, ROOT / "benchmarks/token_prediction.py", "--json", "--observations"]
    printed = subprocess.run(
        [*command, table, ours], capture_output=True, text=True, check=True
    ).stdout
    report = json.loads(printed)
    assert report["skipped_chips"] == {"h900": 1}
    assert report["kinds"]["decode"]["rows"] > 1
    assert 0 < report["pooled"]["median_percent"] < 100
