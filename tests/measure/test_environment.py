"""The environment describes this machine, and its fingerprint is constant for one host."""

from __future__ import annotations

import subprocess
from pathlib import Path

import psutil
import pytest

from epochcost.measure.environment import code_revision, detect_environment
from epochcost.measure.memory import peak_memory_bytes
from epochcost.measure.runtime import runtime_name
from epochcost.results.environment import Gpu, fingerprint

GIB = 2**30


H200 = Gpu(name="NVIDIA H200", memory_bytes=141 * GIB, driver="580.1")


def test_this_machine_is_described() -> None:
    """Cores, memory, runtime and packages are those of this process."""
    found = detect_environment()
    assert found.logical_cpus == len(psutil.Process().cpu_affinity())
    assert found.memory_bytes == psutil.virtual_memory().total
    assert found.cpu
    assert found.runtime == runtime_name()
    assert found.runtime.startswith("onnxruntime")
    assert {"numpy", "onnx", "epochcost"} <= found.packages.keys()
    assert found.instance is None


def test_the_fingerprint_ignores_what_varies_between_boots() -> None:
    """A few megabytes and another driver leave the fingerprint unchanged."""
    same = H200.model_copy(update={"driver": "590.2"})
    assert fingerprint("EPYC", 8, 16, 64 * GIB, (H200,)) == fingerprint(
        "EPYC", 8, 16, 64 * GIB - 9_000_000, (same,)
    )


def test_the_fingerprint_tells_hosts_apart() -> None:
    """A difference in CPU, cores, memory or GPUs changes the fingerprint."""
    hosts = {
        fingerprint("EPYC", 8, 16, 64 * GIB, ()),
        fingerprint("Xeon", 8, 16, 64 * GIB, ()),
        fingerprint("EPYC", 16, 16, 64 * GIB, ()),
        fingerprint("EPYC", 8, 8, 64 * GIB, ()),
        fingerprint("EPYC", 8, 16, 32 * GIB, ()),
        fingerprint("EPYC", 8, 16, 64 * GIB, (H200,)),
        fingerprint("EPYC", 8, 16, 64 * GIB, (H200, H200)),
        fingerprint(None, None, 16, 64 * GIB, ()),
    }
    assert len(hosts) == 8


def test_peak_memory_is_at_least_what_is_held() -> None:
    """The peak is in bytes, and not below the current resident memory."""
    peak = peak_memory_bytes()
    assert peak is not None
    assert peak >= psutil.Process().memory_info().rss * 0.9


def git(folder: Path, *arguments: str) -> str:
    """Run git without the user's settings."""
    identity = ("-c", "user.name=Test", "-c", "user.email=test@example.org")
    command = ("git", *identity, "-C", str(folder), *arguments)
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()


def checkout(folder: Path) -> Path:
    """A repository whose one package is committed; returns the package."""
    package = folder / "package"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text("")
    git(folder, "init", "--quiet")
    git(folder, "add", ".")
    git(folder, "commit", "--quiet", "-m", "First")
    return package


def test_a_clean_checkout_is_its_commit(tmp_path: Path) -> None:
    """A changed file outside the package does not make the code modified."""
    package = checkout(tmp_path)
    (tmp_path / "notes.txt").write_text("beside the package")
    found = code_revision(package)
    assert found is not None
    assert (found.commit, found.modified) == (git(tmp_path, "rev-parse", "HEAD"), False)


@pytest.mark.parametrize("place", ["package", "onnxstep"])
def test_an_edited_or_added_file_is_a_modification(tmp_path: Path, place: str) -> None:
    """A file added to the package or to onnxstep makes the code modified."""
    package = checkout(tmp_path)
    (tmp_path / place).mkdir(exist_ok=True)
    (tmp_path / place / "added.py").write_text("")
    found = code_revision(package)
    assert found is not None
    assert found.modified


def test_an_installed_package_is_not_of_the_checkout_around_it(tmp_path: Path) -> None:
    """A package installed in a checkout's virtual environment has no revision."""
    checkout(tmp_path)
    installed = tmp_path / "venv/package"
    installed.mkdir(parents=True)
    (installed / "__init__.py").write_text("")
    assert code_revision(installed) is None
