"""Reported runs: their GPUs and price, and what is stored of them."""

from __future__ import annotations

import datetime as dt
import json
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from epochcost.errors import InputError
from epochcost.results.reported import ReportedRun, Terms, reported_runs
from epochcost.results.sidecar_faults import sidecar_faults
from epochcost.results.store import Loaded, load_all, load_sidecars, write_sidecar
from epochcost.specs.catalogue import Catalogue
from tool_exports import AGGREGATE, GUIDELLM, VLLM, rack_project, write_export

NOW = dt.datetime(2026, 11, 26, tzinfo=dt.UTC)


@pytest.fixture(name="catalogue", scope="module")
def catalogue_fixture(tmp_path_factory: pytest.TempPathFactory) -> Catalogue:
    """A catalogue with a decoder, a machine without GPUs and a machine with eight."""
    return rack_project(tmp_path_factory.mktemp("reported"))


def reported(
    catalogue: Catalogue, path: Path, model: str = "tiny", hardware: str = "rack", **terms: Any
) -> tuple[ReportedRun, ...]:
    """The runs of a file with these terms."""
    return reported_runs(catalogue, path, model, hardware, Terms(**terms))


def devices(catalogue: Catalogue, path: Path, **terms: Any) -> tuple[int | None, int | None]:
    """The numbers of GPUs and of machines of a file's first run."""
    record = reported(catalogue, path, **terms)[0]
    return record.terms.gpus, record.terms.machines


def test_gpus_are_those_of_the_reporter_the_file_or_the_machine(
    catalogue: Catalogue, tmp_path: Path
) -> None:
    """GPUs are from the reporter, the file or the machine, in this order."""
    plain = write_export(tmp_path, VLLM)
    named = write_export(tmp_path, VLLM, "concurrency_32_req_rate_inf_gpus_16_ctx_8_gen_8.json")
    aggregate = write_export(tmp_path, AGGREGATE, "agg.json")
    assert devices(catalogue, plain) == (8, 1)
    assert devices(catalogue, plain, machines=3) == (24, 3)
    assert devices(catalogue, plain, gpus=9) == (9, 2)
    assert devices(catalogue, named) == (16, 2)
    assert devices(catalogue, named, gpus=4) == (4, 1)
    assert devices(catalogue, aggregate) == (8, 1)
    assert devices(catalogue, plain, hardware="local") == (None, 1)


@pytest.mark.parametrize(
    ("terms", "words"),
    [
        ({"gpus": 4}, "--gpus 4: expected the 8 that the file states"),
        ({"machines": 1, "gpus": 8, "hardware": "local"}, "expected a machine with GPUs"),
        ({"model": "absent"}, "unknown model"),
        ({"hardware": "absent"}, "unknown hardware"),
        ({"price": "absent"}, "unknown price"),
        ({"price": "local-11-01"}, "expected a price of rack: rack-11-01"),
        ({"hardware": "local", "gpu_hour": Decimal(2)}, "expected a machine with GPUs"),
    ],
)
def test_terms_that_do_not_fit_are_refused(
    catalogue: Catalogue, tmp_path: Path, terms: dict[str, Any], words: str
) -> None:
    """The refusal names the option that does not fit."""
    with pytest.raises(InputError, match=words):
        reported(catalogue, write_export(tmp_path, AGGREGATE), **terms)


def test_too_few_machines_are_refused(catalogue: Catalogue, tmp_path: Path) -> None:
    """Sixteen GPUs are refused on one machine of eight."""
    with pytest.raises(InputError, match="--machines 1: expected at least 2 of rack, which has 8"):
        reported(catalogue, write_export(tmp_path, VLLM), gpus=16, machines=1)


def test_runs_are_stored_beside_results(catalogue: Catalogue, tmp_path: Path) -> None:
    """Each run has a file. The same export with another price replaces the files."""
    export, root = write_export(tmp_path, GUIDELLM), tmp_path / "results"
    for rate in ("2.31", "3"):
        records = reported(catalogue, export, gpu_hour=Decimal(rate), precision="fp8")
        paths = [write_sidecar(root, record) for record in records]
    assert [path.parent for path in paths] == [root / "rack/reported"] * 3
    assert load_all(root) == Loaded({}, ())
    assert tuple(load_sidecars(root, ReportedRun).records.values()) == records
    assert {(record.terms.gpu_hour, record.terms.precision) for record in records} == {(3, "fp8")}
    assert list(sidecar_faults(catalogue, root, NOW)) == []


@pytest.mark.parametrize(
    ("key", "value", "words"),
    [
        ("reported_version", 2, "reported_version: Input should be 1"),
        ("terms", {"machines": 0}, "terms.machines: Input should be greater than 0"),
        ("terms", {"gpu_hour": "-1"}, "terms.gpu_hour: "),
        ("terms", {"gpu_hour": "1", "price": "x"}, "gpu_hour and price should not both"),
        ("model", "absent", "model: expected a model whose spec has [decoder], got 'absent'"),
        ("source_digest", "0" * 16, "expected the name tiny-00000000-0.json"),
    ],
)
def test_a_damaged_record_is_a_fault(
    catalogue: Catalogue, tmp_path: Path, key: str, value: object, words: str
) -> None:
    """The check of results names the damaged file and its key."""
    (record,) = reported(catalogue, write_export(tmp_path, VLLM))
    path = write_sidecar(tmp_path, record)
    path.write_text(json.dumps(json.loads(path.read_text()) | {key: value}))
    (fault,) = sidecar_faults(catalogue, tmp_path, NOW)
    assert fault.path == path
    assert words in fault.message


def test_a_price_that_is_gone_is_a_fault(catalogue: Catalogue, tmp_path: Path) -> None:
    """A stored run with a price of another machine is a fault."""
    (record,) = reported(catalogue, write_export(tmp_path, VLLM))
    other = Terms(price="local-11-01")
    write_sidecar(tmp_path, record.model_copy(update={"terms": other}))
    (fault,) = sidecar_faults(catalogue, tmp_path, NOW)
    assert fault.message == "price: expected a price of rack, got 'local-11-01'"
