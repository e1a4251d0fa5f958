"""Submitted result files: sound ones pass, and others are refused in one line."""

from __future__ import annotations

import datetime as dt
import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from epochcost.analysis.inputs import read_inputs
from epochcost.errors import InputError
from epochcost.plan.sweep import FailedSize
from epochcost.results.environment import Conditions, fingerprint
from epochcost.results.records import Result
from epochcost.results.rounds import add_round
from epochcost.results.sidecars import LIMIT_VERSION, BatchLimit
from epochcost.results.store import MOST_BYTES, write_sidecar
from epochcost.specs.loader import load_catalogue
from revisions import STEPS
from submitted import checked, sound, stored, the_fault


def test_a_sound_result(project: Path) -> None:
    """A sound result passes, with its statistics and a remark on its new machine."""
    path = stored(project, sound(project))
    (one,) = checked(project, path).submissions
    assert one.summary is not None
    assert one.summary.mean == pytest.approx(0.01)
    assert "the first result of local" in one.remarks


def test_a_check_of_all_results_has_no_statistics(project: Path) -> None:
    """Statistics are computed for named files only."""
    path = stored(project, sound(project))
    (one,) = checked(project).submissions
    (named,) = checked(project, path).submissions
    assert one.summary is None
    assert one.remarks == named.remarks


def test_a_file_beside_the_results(project: Path) -> None:
    """A path that leaves the folder of results by `..` is refused."""
    path = stored(project, sound(project))
    outside = project / "docs/data/x.json"
    outside.write_bytes(path.read_bytes())
    message = the_fault(project, Path("docs/data/results/../x.json"))
    assert message == "expected a file below docs/data/results, got one outside: copy it there"


def test_a_host_that_nobody_knows(project: Path) -> None:
    """A new host of a known machine gets a remark for the reviewer."""
    stored(project, sound(project))
    other = sound(project, batch_size=64, samples=[one * 1.1 for one in STEPS])
    host = other.environment.model_copy(update={"memory_bytes": 2**34})
    digits = fingerprint(host.cpu, host.physical_cores, host.logical_cpus, 2**34, ())
    host = host.model_copy(update={"fingerprint": digits})
    path = stored(project, other.model_copy(update={"environment": host}))
    (one,) = checked(project, path).submissions
    assert f"the first result of local on the host {digits[:4]}" in one.remarks
    assert any(
        "on the host" in word for one in checked(project).submissions for word in one.remarks
    )


HOSTILE: dict[str, tuple[Callable[[bytes], bytes], str]] = {
    "truncated": (lambda data: data[: len(data) // 2], "expected a complete JSON document"),
    "UTF-16": (lambda data: data.decode().encode("utf-16"), "expected UTF-8 text"),
    "not a number": (lambda data: data.replace(b"0.0099", b"NaN", 1), "finite number"),
    "overflow": (lambda data: data.replace(b"0.0099", b"1e999", 1), "finite number"),
    "100,000 levels": (lambda _: b"[" * 100_000, "expected a JSON document"),
    "too long": (lambda data: data + b" " * MOST_BYTES, "should be at most 5,000,000 bytes"),
    "NUL": (lambda data: data.replace(b"Linux", b"Li\\u0000ux"), "control characters"),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_file(project: Path, name: str) -> None:
    """A file with hostile bytes is refused in one line."""
    path = stored(project, sound(project))
    change, words = HOSTILE[name]
    path.write_bytes(change(path.read_bytes()))
    assert words in the_fault(project, path)


def _end_of_sweep(result: Result, hardware: str, words: str) -> BatchLimit:
    return BatchLimit(
        limit_version=LIMIT_VERSION,
        sweep_id=result.trial.model_copy(update={"batch_size": 0}).id,
        trial=result.trial,
        hardware=hardware,
        ended_at=dt.datetime(2026, 11, 21, tzinfo=dt.UTC),
        cause="memory",
        reason="out of memory",
        sizes=(32,),
        failed=(FailedSize(batch_size=64, words=words, of_memory=True),),
        environment=result.environment,
    )


def test_words_that_a_terminal_would_obey(project: Path) -> None:
    """Control characters in a stored end of a sweep are refused, however its folder is named."""
    limit = _end_of_sweep(sound(project), "local", "\x1b[2J")
    path = write_sidecar(project / "docs/data/results", limit)
    (fault,) = checked(project).faults
    assert (fault.path.name, "control characters" in fault.message) == (path.name, True)
    assert checked(project, path.parent / ".." / path.parent.name).faults == (fault,)


def test_the_end_of_a_sweep_on_an_unknown_machine(project: Path) -> None:
    """Records of every kind are refused if their machine has no spec."""
    limit = _end_of_sweep(sound(project), "nowhere", "bad_alloc")
    write_sidecar(project / "docs/data/results", limit)
    (fault,) = checked(project).faults
    assert fault.message == "hardware: expected a machine with a spec, got 'nowhere'"


def test_one_bad_file_is_one_line(project: Path) -> None:
    """Each file with huge values is one fault, and the other files are read."""
    stored(project, sound(project))
    reading = {"meter": "RAPL", "of": "cpu", "joules": 1e300, "seconds": 0.6}
    for size, (key, value) in enumerate(
        (
            ("started_at", "9999-12-31T23:59:59Z"),
            ("samples_seconds", [1e290] * 60),
            (
                "energy",
                {"readings": [reading]},
            ),
        )
    ):
        path = stored(project, sound(project, batch_size=64 << size))
        document = json.loads(path.read_bytes())
        document["measurement"][key] = value
        path.write_text(json.dumps(document), encoding="utf-8")
    found = checked(project)
    assert (len(found.faults), len(found.submissions)) == (3, 1)
    inputs = read_inputs(load_catalogue(project), [project / "docs/data/results"], project / "docs")
    assert (len(inputs.problems), len(inputs.stored)) == (3, 1)


def test_links_and_places(project: Path) -> None:
    """A link, a folder, a wrong name and a place outside the results are refused."""
    path = stored(project, sound(project))
    link = path.with_name("link.json")
    link.symlink_to(path)
    assert "got a link" in the_fault(project, link)
    folder = path.with_name("folder.json")
    folder.mkdir()
    with pytest.raises(InputError, match=r"found no \.json file there"):
        checked(project, folder)
    renamed = path.with_name("renamed.json")
    shutil.copyfile(path, renamed)
    assert "expected the name net-training-cpu-b32-" in the_fault(project, renamed)
    outside = project / "local" / path.name
    outside.parent.mkdir()
    shutil.copyfile(path, outside)
    assert "got one outside" in the_fault(project, outside)
    with pytest.raises(InputError, match="there is no such file"):
        checked(project, project / "nowhere.json")


def test_a_machine_that_is_another(project: Path) -> None:
    """A contradiction to the spec is refused, unless the result states it."""
    result = sound(project, hardware="other")
    path = stored(project, result)
    assert "got 2 logical CPUs, not 4" in the_fault(project, path)
    said = result.model_copy(update={"contradictions": ("2 logical CPUs, not 4",)})
    (one,) = checked(project, stored(project, said)).submissions
    assert "differs from the spec: 2 logical CPUs, not 4" in one.remarks


def test_work_of_another_day(project: Path) -> None:
    """A result of another graph is refused as a submission, but a stored one gets a remark."""
    old = sound(project)
    trial = old.trial.model_copy(update={"graph_sha256": "c" * 64})
    path = stored(project, old.model_copy(update={"trial": trial, "trial_id": trial.id}))
    assert "graph_sha256: expected " in the_fault(project, path)
    found = checked(project)
    assert not found.faults
    assert any(remark.startswith("stale: graph_sha256") for remark in found.files_by_remark())


def test_times_without_a_spread(project: Path) -> None:
    """Equal samples give a remark for the reviewer."""
    path = stored(project, sound(project, samples=[0.01] * 60))
    (one,) = checked(project, path).submissions
    assert "all 60 samples are the same: 10 ms" in one.remarks


def test_rounds_that_no_figure_uses_need_no_remark(project: Path) -> None:
    """Other programs in some of the rounds give no remark, since no figure uses these rounds."""
    for loads in ((0.0, 1.9), (1.9, 1.9)):
        result = sound(project)
        measured = None
        for number, load in enumerate(loads):
            begun = result.measurement.started_at + dt.timedelta(minutes=number)
            watched = Conditions(seconds=0.7, others_cpus=load)
            changes = {"started_at": begun, "conditions": watched}
            measured = add_round(measured, result.measurement.model_copy(update=changes), 0.02)
        path = stored(project, result.model_copy(update={"measurement": measured}))
        (one,) = checked(project, path).submissions
        warned = any("other programs" in remark for remark in one.remarks)
        assert warned == all(loads)
