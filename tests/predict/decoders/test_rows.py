"""Published serving figures become seconds until the first token or per token."""

from __future__ import annotations

import csv
import re
import shutil
from collections import Counter
from pathlib import Path

import pytest

from epochcost.errors import SpecError
from epochcost.predict.decoders.chips import CpuForm
from epochcost.predict.decoders.rows import (
    Names,
    TokenRow,
    names_of,
    precision_of,
    read_lines,
    software_of,
    token_rows,
    token_rows_of,
)
from epochcost.predict.learnt import table_faults
from epochcost.specs.catalogue import Catalogue
from epochcost.specs.loader import load_catalogue

ROOT = Path(__file__).parents[3]
_COLUMNS = {
    "source": "test", "model": "Llama-3.1-8B-Instruct", "mode": "infer", "precision": "bf16",
    "software": "vLLM 0.22.1 CUDA", "chip": "h100-sxm5", "count": "1", "licence": "none stated",
    "metric": "output throughput", "value": "1", "unit": "tokens/s", "task": "online serving: chat",
    "input_tokens": "256", "output_tokens": "128",
}  # fmt: skip


_OWN_SPEC = """\
id = "own-tokens"
name = "Our vLLM runs"
kind = "tokens"
table = "own-tokens.csv"
licence = "none stated"
retrieved = 2026-11-26
source = "our load tests of November 2026"

[columns]
mode = "infer"
software = "vLLM 0.22.1"
precision = "bf16"
"""
_OWN_TABLE = """\
model,chip,count,metric,value,unit,input_tokens,output_tokens,concurrency,task
Llama-3.1-8B-Instruct,l4,1,"time to first token, median",182,ms,1024,256,1,online serving
Llama-3.1-8B-Instruct,l4,1,output throughput,231,tokens/s,1024,256,16,online serving
"""


@pytest.fixture(scope="module")
def names(catalogue: Catalogue) -> Names:
    """The names of models and chips in the project's rows."""
    return names_of(catalogue)


@pytest.fixture(scope="module")
def rows(catalogue: Catalogue) -> tuple[TokenRow, ...]:
    """The project's serving rows."""
    return token_rows(catalogue)


def _read(folder: Path, names: Names, **cells: str) -> tuple[TokenRow, ...]:
    """The rows of a file with one line; ``cells`` replaces default cells."""
    path = folder / "own.csv"
    row = _COLUMNS | cells
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, list(row))
        writer.writeheader()
        writer.writerow(row)
    return tuple(token_rows_of(read_lines(path, names, {})))


def test_any_columns_are_read_on_request(tmp_path: Path, names: Names) -> None:
    """Further columns of a foreign table are ignored; that of the accelerator's name is known."""
    table = tmp_path / "foreign.csv"
    columns = _COLUMNS | {"accelerator": "NVIDIA H100"}
    table.write_text(f"{','.join(columns)},colour\n{','.join(columns.values())},red\n", "utf-8")
    (line,) = read_lines(table, names, {}, any_column=True)
    assert line.device is not None
    with pytest.raises(SpecError, match='expected known columns, got "colour"'):
        read_lines(table, names, {})


def test_tables_of_tokens_give_rows_of_both_kinds(rows: tuple[TokenRow, ...]) -> None:
    """Both kinds of seconds have over 1,000 rows on accelerators and on processors."""
    kinds = Counter((row.question.kind, isinstance(row.question.device, CpuForm)) for row in rows)
    assert len(kinds) == 4
    assert min(kinds.values()) > 1000


def test_prefill_rate_is_seconds_of_its_prompt(tmp_path: Path, names: Names) -> None:
    """A prompt of 512 tokens at 2,048 tokens a second takes a quarter of a second."""
    (row,) = _read(
        tmp_path, names, metric="prefill throughput", value="2048", input_tokens="512",
        output_tokens="0", concurrency="1",
    )  # fmt: skip
    assert (row.question.kind, row.seconds, row.question.sequences, row.question.prompt) == (
        "first",
        0.25,
        1.0,
        512,
    )


def test_decode_rate_is_seconds_between_tokens(tmp_path: Path, names: Names) -> None:
    """Eight sequences with 400 tokens a second together have 20 ms per token."""
    (row,) = _read(tmp_path, names, metric="decode throughput", value="400", batch="8")
    assert (row.question.kind, row.seconds, row.question.sequences) == ("token", 0.02, 8.0)
    assert not row.question.interleaved


def test_rate_at_load_is_seconds_with_prompts(tmp_path: Path, names: Names) -> None:
    """The output rate of 16 concurrent users is sequences over seconds per token."""
    (row,) = _read(tmp_path, names, value="800", concurrency="16")
    assert row.question.interleaved
    assert row.seconds is not None
    assert row.question.sequences / row.seconds == row.tokens_per_second == 800


def test_rate_that_counts_prompts_is_of_the_output_alone(tmp_path: Path, names: Names) -> None:
    """Two thirds of 900 tokens a second are prompt tokens, so 300 are output."""
    (row,) = _read(
        tmp_path, names, metric="total throughput", task="one batch, static lengths", value="900",
        batch="4",
    )  # fmt: skip
    assert row.tokens_per_second == pytest.approx(300)
    assert row.seconds == pytest.approx(4 / 300)


def test_rate_at_most_load_has_no_batch(tmp_path: Path, names: Names) -> None:
    """A row in which all requests are sent at once has no batch size and no seconds."""
    (row,) = _read(tmp_path, names, task="maximum load", value="5000", request_rate="inf")
    assert (row.seconds, row.tokens_per_second) == (None, 5000)


@pytest.mark.parametrize(
    "cells",
    [
        {"metric": "time to first token, median", "unit": "ms", "concurrency": "40"},
        {"metric": "time to first token", "unit": "s", "concurrency": "1", "input_tokens": ""},
        {"metric": "time per output token, median", "unit": "ms", "concurrency": "40"},
        {"metric": "output throughput", "concurrency": "1"},
        {"metric": "request throughput", "unit": "requests/s"},
        {"model": "Unheard-Of-9B"},
        {"mode": "train"},
        {"chip": "unheard-of"},
    ],
)
def test_figures_of_no_kind_are_left_out(
    tmp_path: Path, names: Names, cells: dict[str, str]
) -> None:
    """Times with waiting, or of an unknown prompt; unknown metrics, models, chips; trainings."""
    assert _read(tmp_path, names, **cells) == ()


@pytest.mark.parametrize(
    ("text", "precision"),
    [
        ("Q4_K_M", "int4"),
        ("GPTQ-Int8", "int8"),
        ("bnb.nf4-dq", "int4"),
        ("MXFP4", "fp4"),
        ("float8_rowwise weights", "fp8"),
        ("fp16 or bf16", "bf16"),
        ("bfloat16 weights", "bf16"),
        ("mixed", "bf16"),
        ("Q5_K_M, 5.5 bpw", "int4"),
        ("float32", "fp32"),
    ],
)
def test_precision_is_of_the_weights(text: str, precision: str) -> None:
    """A source's text of a precision maps to the precision of the weights."""
    assert precision_of(text) == precision


def test_stated_bytes_of_weights_hold(tmp_path: Path, names: Names) -> None:
    """A stated size of the weights is used, else two bytes per parameter in bf16.

    A text without a number of bits means int4.
    """
    (stated,) = _read(tmp_path, names, value="8", concurrency="4", weight_bytes="5000000000")
    (usual,) = _read(tmp_path, names, value="8", concurrency="4")
    (four,) = _read(tmp_path, names, value="8", concurrency="4", precision="some . bpw")
    assert stated.question.weight_bytes == 5e9
    assert usual.question.weight_bytes == 2 * usual.question.form.parameters
    assert four.question.weight_bytes == 4.5 / 8 * four.question.form.parameters


def test_software_is_a_family_without_its_version() -> None:
    """Ollama is llama.cpp, Vulkan is kept apart, and an unlisted program keeps its name."""
    assert software_of("llama.cpp b6918 (Vulkan)") == "llama.cpp Vulkan"
    assert software_of("Ollama (llama.cpp)") == "llama.cpp"
    assert software_of("vllm (June 2026)") == "vLLM"
    assert software_of("Own engine 3") == "Own engine 3"


@pytest.mark.parametrize(
    ("cells", "message"),
    [
        ({"value": "fast"}, "value: expected a number above 0, got 'fast'"),
        ({"count": "-1"}, "count: expected a number above 0, got '-1'"),
        ({"count": "0"}, "count: expected a number above 0, got '0'"),
        ({"count": "1.5"}, "count: expected a whole number, got '1.5'"),
        ({"count": "", "tensor_parallel": "4"}, "count: expected the number of devices beside ten"),
        ({"input_tokens": "1k"}, "input_tokens: expected a number above 0, got '1k'"),
        ({"concurrency": "sixteen"}, "concurrency: expected a number above 0, got 'sixteen'"),
        (
            {"mode": "train", "sequence_or_image": "2k"},
            "sequence_or_image: expected a number above 0, got",
        ),
        ({"precision": "Q5_K_M"}, 'precision: expected a text with one of "fp32", "bf16", "fp8", '),
        ({"precision": ""}, "precision: expected a text with one of"),
        ({"date": "soon"}, "date: expected a past year, month or day, such as 2026, 2026-08 or"),
        ({"concurency": "1"}, 'expected known columns, got "concurency"; did you mean "concurr'),
        ({"metric": "throughput"}, "metric: expected a text that begins with one of"),
        ({"unit": "tok/s"}, "unit: expected tokens/s or requests/s, got 'tok/s'"),
        ({"metric": "time to first token", "unit": "msec"}, "unit: expected s or ms, got 'msec'"),
    ],
)
def test_bad_values_are_named_by_line(
    tmp_path: Path, names: Names, cells: dict[str, str], message: str
) -> None:
    """A cell or column that no reader understands is reported with file and line.

    The row's model does not matter: `check` reads the table without the names of models.
    """
    with pytest.raises(SpecError) as caught:
        _read(tmp_path, names, **{"model": "Unheard-Of-9B", **cells})
    assert re.search(rf"own\.csv:[12]:1: {re.escape(message)}", str(caught.value))


def test_table_without_a_licence_is_read_from_a_project(tmp_path: Path) -> None:
    """A project's own table uses the chips and models of the project's specs."""
    observations = tmp_path / "specs" / "observations"
    observations.mkdir(parents=True)
    for spec in ("devices/l4.toml", "models/llama-3.1-8b.toml"):
        (tmp_path / "specs" / spec).parent.mkdir()
        shutil.copy(ROOT / "specs" / spec, tmp_path / "specs" / spec)
    (observations / "own-tokens.toml").write_text(_OWN_SPEC, encoding="utf-8")
    (observations / "own-tokens.csv").write_text(_OWN_TABLE, encoding="utf-8")
    catalogue = load_catalogue(tmp_path)
    first, loaded = token_rows(catalogue)
    assert (first.question.kind, first.seconds, first.line.cells["licence"]) == (
        "first",
        0.182,
        "none stated",
    )
    assert loaded.tokens_per_second == 231
    assert (loaded.question.device, loaded.question.software) == (catalogue.devices["l4"], "vLLM")
    assert table_faults(observations / "own-tokens.toml") == ()


def test_a_misspelt_column_of_the_spec_is_a_fault(tmp_path: Path) -> None:
    """A key of [columns] that no reader knows would change nothing."""
    spec = tmp_path / "own-tokens.toml"
    spec.write_text(f'{_OWN_SPEC}concurency = "16"\n', encoding="utf-8")
    (fault,) = table_faults(spec)
    message = 'columns.concurency: unknown column; did you mean "concurrency"?'
    assert (fault.line, fault.message) == (13, message)


def test_row_of_a_machine_that_nobody_described_keeps_its_chip(
    tmp_path: Path, names: Names
) -> None:
    """An unlisted processor keeps its name, and the note gives its cores."""
    (row,) = _read(
        tmp_path, names, chip="xeon-9999z", machine="aws z9.metal", metric="decode throughput",
        note="12 threads; spread 3 %",
    )  # fmt: skip
    assert row.question.device == CpuForm("xeon-9999z", cores=12)
