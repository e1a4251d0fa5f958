"""Peak rates of this machine, measured by the kernels that trials use."""

from __future__ import annotations

import datetime as dt
import shutil
import sys
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from epochcost.errors import CapabilityError
from epochcost.measure.ceilings import (
    TIMES,
    CeilingWork,
    ceilings_here,
    measure_apart,
    measure_ceiling,
    measured_ceilings,
)
from epochcost.results.ceilings import Ceiling, Ceilings
from epochcost.results.environment import Gpu
from epochcost.results.sidecar_faults import sidecar_faults
from epochcost.results.store import load_sidecars, write_sidecar
from epochcost.results.submissions import check_results
from epochcost.specs.catalogue import Catalogue
from epochcost.specs.loader import load_catalogue
from kept_ceilings import ceiling, make_ceilings, with_own_fingerprint
from report_project import REPOSITORY, make_result
from revisions import SPECS, write_spec

LITTLE = CeilingWork(matrix_side=64, copied_bytes=2**16)


def test_both_works_are_timed_to_the_bytes_asked_for() -> None:
    """Products and copies are timed as often as required, in the requested sizes."""
    found = measure_ceiling(LITTLE, 1)
    assert (found.threads, found.matrix_side, found.copied_bytes) == (1, 64, 2**16)
    assert (found.precision, len(found.product_seconds)) == ("fp32", TIMES)
    assert len(found.copy_seconds) == TIMES
    assert 0 < found.flops.low <= found.flops.median <= found.flops.high


def test_a_precision_without_a_kernel_is_left_out(capfd: pytest.CaptureFixture[str]) -> None:
    """The CPU has no bfloat16 product: a message says so, and fp32 is still measured."""
    work = LITTLE.model_copy(update={"precisions": ("fp32", "bf16")})
    assert [one.precision for one in measured_ceilings(work)] == ["fp32"]
    assert "bf16: " in capfd.readouterr().err


def test_a_process_of_its_own_measures() -> None:
    """The real command measures a little work in a separate process."""
    (found,) = measure_apart(LITTLE)
    assert (found.threads, found.matrix_side) == (1, 64)


def test_the_message_has_the_last_line_of_a_failed_process(monkeypatch: pytest.MonkeyPatch) -> None:
    """If the measuring process fails, the error has its last output."""
    command = [sys.executable, "-c", "raise SystemExit('no memory')"]
    monkeypatch.setattr("epochcost.measure.start.module_command", lambda *_: command)
    with pytest.raises(CapabilityError, match="got status 1: no memory"):
        measure_apart(LITTLE)


NOW = dt.datetime(2026, 11, 22, tzinfo=dt.UTC)


HOST = with_own_fingerprint(make_result().environment)
WITH_GPU = with_own_fingerprint(
    HOST.model_copy(
        update={"gpus": (Gpu(name="NVIDIA H200", memory_bytes=150_000_000_000, driver="580"),)}
    )
)


@pytest.fixture(name="catalogue")
def catalogue_fixture(tmp_path: Path) -> Catalogue:
    """Specs with a machine that is detected."""
    for name, text in SPECS.items():
        write_spec(tmp_path, name, text)
    (tmp_path / "models").mkdir()
    shutil.copyfile(REPOSITORY / "models/mnist_mlp.onnx", tmp_path / "models/mnist_mlp.onnx")
    return load_catalogue(tmp_path)


@pytest.fixture(name="asked")
def asked_fixture(monkeypatch: pytest.MonkeyPatch) -> list[CeilingWork]:
    """A list to which each requested work is added. The measured times are made up."""
    asked: list[CeilingWork] = []

    def measured(work: CeilingWork) -> tuple[Ceiling, ...]:
        assert 0 < work.copied_bytes <= 2**31
        asked.append(work)
        return tuple(
            ceiling(count, 1e11 * count, 1e10, precision)
            for precision in work.precisions
            for count in work.threads
        )

    monkeypatch.setattr("epochcost.measure.ceilings.measure_apart", measured)
    return asked


def test_a_host_is_measured_once(
    catalogue: Catalogue, tmp_path: Path, asked: list[CeilingWork]
) -> None:
    """A host's stored ceilings are used, unless measuring again is requested."""
    local = catalogue.hardware["local"]
    here = partial(ceilings_here, local, tmp_path / "results", "cpu")
    first, new = here(again=False)
    assert new
    assert asked[0].threads[0] == 1
    assert asked[0].threads[-1] == first.environment.logical_cpus
    assert here(again=False) == (first, False)
    assert len(asked) == 1
    assert here(again=True)[1]
    assert len(load_sidecars(tmp_path / "results", Ceilings).records) == 1


def test_a_gpu_is_measured_in_every_precision(
    catalogue: Catalogue,
    tmp_path: Path,
    asked: list[CeilingWork],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A GPU is measured in four precisions by its memory, and has a file of its own."""
    gpus = [
        Gpu(name=name, memory_bytes=size * 2**30, driver=None)
        for name, size in (("T4", 16), ("MIG", 4))
    ]
    monkeypatch.setattr("epochcost.measure.ceilings.shown_gpus", lambda: tuple(gpus))
    local, results = catalogue.hardware["local"], tmp_path / "results"
    found, new = ceilings_here(local, results, "cuda", again=False, device=1)
    assert new
    assert (asked[0].provider, asked[0].device) == ("cuda", 1)
    assert asked[0].copied_bytes == 2**29
    assert [one.precision for one in found.ceilings] == ["fp32", "tf32", "fp16", "bf16"]
    ceilings_here(local, results, "cpu", again=False)
    other, new = ceilings_here(local, results, "cuda", again=False)
    assert new
    assert (found.device, other.device, asked[-1].device) == (1, 0, 0)
    assert len(load_sidecars(results, Ceilings).records) == 3


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"ceilings": (ceiling(1, 2e12, 1e10),)}, "product_seconds: expected at most 4.16e11"),
        ({"ceilings": (ceiling(1, 1e11, 1e13),)}, "copy_seconds: expected at most"),
        ({"ceilings": (ceiling(64, 1e11, 1e10),)}, "threads: expected at most the 2 CPUs"),
        ({"measured_at": dt.datetime(2031, 1, 1, tzinfo=dt.UTC)}, "in the past"),
        ({"measured_at": dt.datetime(1970, 1, 1, tzinfo=dt.UTC)}, "2026-11-01 or later"),
        (
            {"environment": HOST.model_copy(update={"fingerprint": "0" * 16})},
            "fingerprint: expected",
        ),
        ({"provider": "cuda", "ceilings": ()}, "gpus: expected the GPU that was measured"),
        (
            {
                "provider": "cuda",
                "environment": WITH_GPU,
                "ceilings": (ceiling(1, 1e16, 1e12),),
                "contradictions": ("1 GPUs, not 0",),
            },
            "product_seconds: expected at most",
        ),
        ({"hardware": "nowhere"}, "expected a machine with a spec, got 'nowhere'"),
    ],
)
def test_what_cannot_be_true_is_a_fault(
    catalogue: Catalogue, tmp_path: Path, change: dict[str, Any], said: str
) -> None:
    """Ceilings that cannot be true are a fault in one line."""
    path = write_sidecar(tmp_path / "results", make_ceilings(**({"environment": HOST} | change)))
    (fault,) = sidecar_faults(catalogue, tmp_path / "results", NOW)
    assert fault.path == path
    assert said in fault.message


@pytest.mark.parametrize(
    ("made_up", "said"),
    [
        (ceiling(1, 4.5e13, 2e11), "product_seconds: expected at most 3.64e13 FLOP/s"),
        (ceiling(1, 2e13, 6e11), "copy_seconds: expected at most 3.60e11 bytes/s"),
    ],
)
def test_a_gpu_is_held_to_the_peaks_of_its_device(
    tmp_path: Path, made_up: Ceiling, said: str
) -> None:
    """Ceilings above 1.2 times the L4's peaks, or in a misnamed file, are faults."""
    known, root = load_catalogue(REPOSITORY), tmp_path / "results"
    l4 = Gpu(name="NVIDIA L4", memory_bytes=24 * 2**30, driver="570")
    machine = {"cpu": "AMD EPYC 7R13", "memory_bytes": 16 * 2**30, "logical_cpus": 4}
    host = with_own_fingerprint(HOST.model_copy(update={**machine, "gpus": (l4,)}))
    sound = ceiling(1, 3e13, 2.8e11)
    at_g6 = partial(make_ceilings, host, hardware="g6.xlarge", provider="cuda")
    path = write_sidecar(root, at_g6(ceilings=(sound,)))
    assert list(sidecar_faults(known, root, NOW)) == []
    path.rename(path.with_name("cuda-copy.json"))
    (misnamed,) = sidecar_faults(known, root, NOW)
    assert misnamed.message == f"expected the name {path.name}, got 'cuda-copy.json'"
    path.with_name("cuda-copy.json").unlink()
    write_sidecar(root, at_g6(ceilings=(made_up,)))
    (fault,) = sidecar_faults(known, root, NOW)
    assert said in fault.message


def test_another_machines_ceilings_are_refused_unless_they_say_so(
    catalogue: Catalogue, tmp_path: Path
) -> None:
    """Ceilings that contradict the machine's spec must say so in the file."""
    box = catalogue.hardware["local"].model_copy(
        update={"id": "box", "detected": False, "vcpus": 8}
    )
    hardware = dict(catalogue.hardware) | {"box": box}
    known = Catalogue(**{**vars(catalogue), "hardware": hardware})
    write_sidecar(tmp_path / "results", make_ceilings(HOST, hardware="box"))
    (fault,) = sidecar_faults(known, tmp_path / "results", NOW)
    assert "2 logical CPUs, not 8" in fault.message
    said = ("2 logical CPUs, not 8",)
    write_sidecar(tmp_path / "results", make_ceilings(HOST, hardware="box", contradictions=said))
    assert list(sidecar_faults(known, tmp_path / "results", NOW)) == []


def test_the_check_of_results_looks_at_ceilings(
    catalogue: Catalogue, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ceilings do not count as result files, but their faults are counted."""
    monkeypatch.chdir(tmp_path)
    root = Path("results")
    write_sidecar(root, make_ceilings(HOST))
    checked = check_results(catalogue, root, (), NOW)
    assert checked.faults == ()
    assert list(checked.files_by_remark()) == ["ceilings of local from a host without a result"]
    write_sidecar(root, make_ceilings(HOST, ceilings=(ceiling(1, 2e12, 1e10),)))
    checked = check_results(catalogue, root, (), NOW)
    assert checked.files == 0
    assert len(checked.faults) == 1
