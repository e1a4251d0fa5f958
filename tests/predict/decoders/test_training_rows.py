"""Published trainings become tokens a second of all devices."""

from __future__ import annotations

from pathlib import Path

import pytest

from epochcost.predict.decoders.rows import names_of, read_lines
from epochcost.predict.decoders.training_rows import (
    TrainingRow,
    training_rows,
    training_rows_of,
)
from epochcost.specs.catalogue import Catalogue

_COLUMNS = {
    "mode": "train", "software": "torchtune", "chip": "a100-sxm4-80-gb", "count": "4",
    "licence": "none stated", "model": "Llama-3.1-8B", "sequence_or_image": "1024",
}  # fmt: skip


def _read(folder: Path, catalogue: Catalogue, header: str, line: str) -> TrainingRow:
    path = folder / "own.csv"
    path.write_text(f"{header}\n{line}\n", encoding="utf-8")
    (row,) = training_rows_of(read_lines(path, names_of(catalogue), _COLUMNS))
    return row


def test_every_method_has_rows(catalogue: Catalogue) -> None:
    """Each method has rows with tokens a second."""
    rows = training_rows(catalogue)
    assert {row.question.method for row in rows} == {"pretraining", "full", "lora", "qlora"}
    assert all(row.tokens_per_second > 0 for row in rows)


def test_rate_of_a_device_is_of_all(tmp_path: Path, catalogue: Catalogue) -> None:
    """Four devices with 1,000 tokens a second each train 4,000 tokens a second."""
    row = _read(
        tmp_path, catalogue, "task,precision,metric,value,unit",
        "LoRA fine-tuning (rank 8),bf16,training throughput per GPU,1000,tokens/s",
    )  # fmt: skip
    assert (row.question.method, row.tokens_per_second, row.question.length) == ("lora", 4000, 1024)


def test_iteration_is_its_tokens(tmp_path: Path, catalogue: Catalogue) -> None:
    """8 micro batches of one sequence on each of 4 devices are 32 sequences an iteration."""
    row = _read(
        tmp_path, catalogue, "task,precision,metric,value,unit,note",
        "full fine-tuning,bf16,time of one iteration,2,s,"
        "one iteration is 8 micro batches of 1 sequence on each GPU",
    )  # fmt: skip
    assert (row.question.method, row.tokens_per_second) == ("full", 32 * 1024 / 2)


def test_adapters_on_quantised_weights_are_qlora(tmp_path: Path, catalogue: Catalogue) -> None:
    """LoRA on int4 weights is QLoRA."""
    row = _read(
        tmp_path, catalogue, "task,precision,metric,value,unit",
        'LoRA fine-tuning,"bf16, int4 weights",training throughput,1000,tokens/s',
    )  # fmt: skip
    assert (row.question.method, row.tokens_per_second) == ("qlora", 1000)


@pytest.mark.parametrize("note", ["micro batch 0", "tp=0"])
def test_a_zero_in_a_note_does_not_count(tmp_path: Path, catalogue: Catalogue, note: str) -> None:
    """A step has at least one sequence on a device, and a layer is on at least one device."""
    row = _read(
        tmp_path, catalogue, "task,precision,metric,value,unit,note",
        f"full fine-tuning,bf16,training throughput,1000,tokens/s,{note}",
    )  # fmt: skip
    assert row.question.tokens == 1024
