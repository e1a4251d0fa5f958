"""Result files from strangers: what is sound passes, all else is refused with one line."""

from __future__ import annotations

import datetime as dt
import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from epochcost.analysis.inputs import read_inputs
from epochcost.errors import InputError
from epochcost.plan.digests import graph_digests, work_sha256
from epochcost.results.environment import fingerprint
from epochcost.results.format import parse_result, serialise_result
from epochcost.results.limits import LIMIT_VERSION, BatchLimit, FailedSize, write_limit
from epochcost.results.records import Conditions, Placement, Result
from epochcost.results.store import ResultStore
from epochcost.results.submission import MOST_BYTES
from epochcost.results.submissions import ResultsCheck, check_results, files_by_remark
from epochcost.specs.loader import load_catalogue
from report_project import REPOSITORY, make_result
from revisions import SPECS, STEPS, write_spec

NOW = dt.datetime(2026, 11, 22, tzinfo=dt.UTC)
Document = dict[str, Any]


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Specs, a model and an empty folder of results, where the check is run."""
    for name, text in SPECS.items():
        write_spec(tmp_path, name, text)
    (tmp_path / "models").mkdir()
    shutil.copyfile(REPOSITORY / "models/mnist_mlp.onnx", tmp_path / "models/mnist_mlp.onnx")
    (tmp_path / "docs/data/results/local").mkdir(parents=True)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def sound(project: Path, **fields: Any) -> Result:
    """A result that a machine of this kind may have measured from this model."""
    catalogue = load_catalogue(project)
    made = make_result(samples=fields.pop("samples", STEPS), **fields)
    trial = made.trial.model_copy(
        update={
            "graph_sha256": graph_digests(catalogue, ["net"])["net"],
            "spec_sha256": work_sha256(catalogue.models["net"], made.trial.mode),
        }
    )
    placement = Placement(
        provider="CPUExecutionProvider", nodes_by_provider={"CPUExecutionProvider": {"Gemm": 3}}
    )
    watched = Conditions(seconds=0.7)
    measurement = made.measurement.model_copy(
        update={"steps_taken": 80, "placement": placement, "conditions": watched}
    )
    host = made.environment
    digits = fingerprint(host.cpu, host.physical_cores, host.logical_cpus, 2**33, ())
    return made.model_copy(
        update={
            "trial": trial,
            "trial_id": trial.id,
            "measurement": measurement,
            "environment": host.model_copy(update={"fingerprint": digits}),
        }
    )


def stored(project: Path, result: Result) -> Path:
    """Its file, as a run would write it."""
    folder = project / "docs/data/results"
    (folder / result.hardware).mkdir(exist_ok=True)
    return ResultStore(folder).write(result)


def checked(project: Path, *paths: Path) -> ResultsCheck:
    """The check of all results, or of some."""
    return check_results(load_catalogue(project), Path("docs/data/results"), paths, NOW)


def the_fault(project: Path, path: Path) -> str:
    """The one line that refuses a file."""
    found = checked(project, path)
    assert not found.submissions
    (fault,) = found.faults
    assert fault.message.isprintable()
    assert "\n" not in str(fault)
    return fault.message


def test_a_sound_result(project: Path) -> None:
    """What was measured passes, with its statistics computed anew and its machine's first mark."""
    path = stored(project, sound(project))
    (one,) = checked(project, path).submissions
    assert one.summary is not None
    assert one.summary.mean == pytest.approx(0.01)
    assert "the first result of local" in one.remarks


def test_the_statistics_of_a_folder_are_asked_for(project: Path) -> None:
    """All results of a project have them where they are shown, as in JSON, and not else."""
    stored(project, sound(project))
    catalogue, root = load_catalogue(project), Path("docs/data/results")
    (one,) = check_results(catalogue, root, (), NOW).submissions
    (asked,) = check_results(catalogue, root, (), NOW, summarised=True).submissions
    assert one.summary is None
    assert asked.summary is not None
    assert one.remarks == asked.remarks


def test_a_file_beside_the_results(project: Path) -> None:
    """Two names below the folder are no place in it where one of them leads out again."""
    path = stored(project, sound(project))
    outside = project / "docs/data/x.json"
    outside.write_bytes(path.read_bytes())
    message = the_fault(project, Path("docs/data/results/../x.json"))
    assert message == "expected a file below docs/data/results, got one outside"


def test_a_host_that_nobody_knows(project: Path) -> None:
    """Beside results of the same machine, that of another host is for a person to look at."""
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


def _set(*keys: str, to: Any) -> Callable[[Document], None]:
    def change(document: Document) -> None:
        table = document
        for key in keys[:-1]:
            table = table[key]
        table[keys[-1]] = to

    return change


def _samples(change: Callable[[list[float]], list[float]]) -> Callable[[Document], None]:
    def changed(document: Document) -> None:
        measured = document["measurement"]
        measured["samples_seconds"] = change(measured["samples_seconds"])

    return changed


def _all_clocks(factor: float) -> Callable[[Document], None]:
    """Every time that a result has of its samples is so many times shorter."""

    def change(document: Document) -> None:
        measured = document["measurement"]
        measured["samples_seconds"] = [one / factor for one in measured["samples_seconds"]]
        measured["conditions"]["seconds"] /= factor

    return change


_READING = {"meter": "RAPL", "of": "cpu", "joules": 9.0, "seconds": 0.6}


def _reading(joules: float, seconds: float) -> Callable[[Document], None]:
    reading = _READING | {"joules": joules, "seconds": seconds}
    return _set("measurement", "energy", to={"readings": [reading]})


def _epochs(**values: Any) -> Callable[[Document], None]:
    epoch = {"seconds": 2.0, "waiting_seconds": 0.1} | values
    return _set("measurement", "epochs", to={"steps": 200, "epochs": [epoch]})


def _pinned(cpus: list[int]) -> Callable[[Document], None]:
    return _set("measurement", "pinning", to={"cpus": cpus, "threads": 2})


def _nodes(operator: str, count: int) -> Callable[[Document], None]:
    nodes = {"CPUExecutionProvider": {operator: count}}
    return _set("measurement", "placement", "nodes_by_provider", to=nodes)


def _rounds(minutes: int = 0, **changed: Any) -> Callable[[Document], None]:
    """Two rounds so long apart, at once if not; ``changed`` are values of the second."""

    def change(document: Document) -> None:
        measured = document["measurement"]
        one = {"wall_seconds": 0.75, "warmup_steps": 0, "conditions": {"seconds": 0.35}}
        one |= {"samples": 30, "stop_reason": "precise", "steps_taken": 40}
        first = one | {"started_at": measured["started_at"], "warmup_steps": 1}
        first["wall_seconds"] = 0.9
        measured["wall_seconds"] = 1.65
        at = dt.datetime.fromisoformat(measured["started_at"]) + dt.timedelta(minutes=minutes)
        measured["rounds"] = [first, one | {"started_at": at.isoformat()} | changed]

    return change


TAMPERED: dict[str, tuple[Callable[[Document], None], str]] = {
    "trial's batch": (_set("trial", "batch_size", to=64), "expected trial_id"),
    "trial's id": (_set("trial_id", to="0" * 16), "expected trial_id"),
    "another model": (_set("trial", "model", to="other"), "expected trial_id"),
    "faster": (_samples(lambda one: [x / 1e5 for x in one]), "at least a microsecond a step"),
    "too fast for the CPU": (_all_clocks(5e3), "FLOP/s, what this"),
    "slower": (_samples(lambda one: [x * 10 for x in one]), "in all, got"),
    "one long step": (_samples(lambda one: [*one[:-1], 1e300]), "equal to 1000000000"),
    "no sample": (_samples(lambda _: []), "should have at least 2 samples"),
    "negative": (_samples(lambda one: [-1.0, *one]), "greater than or equal to 0.000000001"),
    "text for a number": (_set("measurement", "wall_seconds", to="fast"), "wall_seconds"),
    "fewer steps": (_set("measurement", "steps_taken", to=5), "steps_taken: expected at least"),
    "the future": (_set("measurement", "started_at", to="2031-01-01T00:00:00Z"), "in the past"),
    "the past": (_set("measurement", "started_at", to="1970-01-01T00:00:00Z"), "from 2026-11-01"),
    "no zone": (_set("measurement", "started_at", to="2026-11-21T00:00:00"), "timezone"),
    "the end of time": (
        _set("measurement", "wall_seconds", to=1e300),
        "equal to 1000000000",
    ),
    "the last day": (
        _set("measurement", "started_at", to="9999-12-31T23:59:59Z"),
        "less than 2200-01-01",
    ),
    "a date as a number": (_set("measurement", "started_at", to=1795000000), "valid datetime"),
    "scaled": (_samples(lambda one: [x / 2 for x in one]), "expected at least 0.454"),
    "scaled far": (_samples(lambda one: [x * 1e290 for x in one]), "less than or equal to"),
    "stretched": (_samples(lambda one: [x * 1.3 for x in one]), "0.7 s of the sampling phase"),
    "nobody watched": (_set("measurement", "conditions", to=None), "conditions: expected how"),
    "a slow phase": (_set("measurement", "wall_seconds", to=1.12), "after 0.5 s of warm"),
    "a machine without memory": (_set("environment", "memory_bytes", to=None), "memory_bytes:"),
    "energy of a star": (_reading(1e300, 0.6), "less than or equal to"),
    "energy of a town": (_reading(1e9, 0.6), "joules: expected at most 100,000 W"),
    "energy of a day": (_reading(1e3, 86_400), "energy.seconds: expected at most the 1.5 s"),
    "format as text": (_set("format_version", to="2"), "format_version"),
    "format as a decimal": (_set("format_version", to=2.0), "format_version"),
    "a number as text": (_set("measurement", "wall_seconds", to="1.5"), "valid number"),
    "a truth as a number": (_set("trial", "spinning", to=1), "valid boolean"),
    "negative nodes": (_nodes("Gemm", -5), "greater than 0"),
    "operators of nobody": (_nodes("Teleport", 3), "placement: expected operators of ONNX"),
    "no operator": (_nodes("<b>", 3), "match pattern"),
    "a byte of memory": (_set("measurement", "peak_memory_bytes", to=1), "equal to 1048576"),
    "a revision of f": (_set("environment", "revision", to="f" * 40), "the id of a commit"),
    "a long decimal": (_set("trial", "budget_seconds", to="1e-999999999"), "40 digits"),
    "a hidden setting": (_set("trial", "session", to={"tf32": True}), "beside the rest"),
    "no warm-up": (_set("measurement", "warmup_seconds", to=[]), "a step at least"),
    "a long wait": (_epochs(waiting_seconds=9e15), "waiting_seconds: expected at most the 2 s"),
    "long tenths": (_epochs(parts_seconds=[0.2] * 11), "parts_seconds: expected at most the 2 s"),
    "a CPU twice": (_pinned([0, 0]), "expected each CPU once"),
    "more CPUs than asked": (_pinned([0, 1]), "expected the None CPUs of the trial, got 2"),
    "rounds at once": (_rounds(), "rounds: expected one after the other"),
    "a short round": (_rounds(1, wall_seconds=0.2), "expected at least the 0.3 s of a round"),
    "a round of another sum": (_rounds(1, wall_seconds=0.9), "the 1.8 s of all rounds"),
    "a round of more steps": (_rounds(1, steps_taken=50), "the 90 of all rounds, got 80"),
    "a round of a long phase": (_rounds(1, conditions={"seconds": 0.7}), "expected at least 0.454"),
    "provider": (_set("measurement", "placement", "provider", to="CUDA"), "should have run there"),
    "nothing ran": (_set("measurement", "placement", "nodes_by_provider", to={}), "placement"),
    "runtime": (_set("environment", "runtime", to="onnxruntime==9.9.9"), "should have run under"),
    "another CPU": (_set("environment", "cpu", to="A Better CPU"), "fingerprint: expected"),
    "more CPUs": (_set("environment", "logical_cpus", to=64), "fingerprint: expected"),
    "memory": (_set("measurement", "peak_memory_bytes", to=2**40), "peak_memory_bytes: expected"),
    "unknown key": (_set("note", to="trust me"), "note: Extra inputs"),
    "missing key": (lambda document: document.pop("environment"), "environment: Field required"),
    "another machine's": (_set("hardware", to="other"), "expected hardware 'local'"),
    "newer format": (_set("format_version", to=99), "a newer epochcost wrote this"),
    "no format": (_set("format_version", to=None), "expected format_version"),
    "control characters": (_set("environment", "python", to="\x1b[2J"), "control characters"),
    "a long text": (_set("environment", "python", to="x" * 30_000), "characters, got 30,000"),
    "deep": (_set("environment", "packages", to=json.loads("[" * 40 + "]" * 40)), "levels"),
    "huge number": (_set("trial", "seed", to=10**30), "below 2^63"),
}


@pytest.mark.parametrize("name", TAMPERED)
def test_a_tampered_result(project: Path, name: str) -> None:
    """Each edit that makes a result untrue is refused for what it did."""
    path = stored(project, sound(project))
    change, words = TAMPERED[name]
    document = json.loads(path.read_bytes())
    change(document)
    path.write_text(json.dumps(document), encoding="utf-8")
    assert words in the_fault(project, path)


HOSTILE: dict[str, tuple[Callable[[bytes], bytes], str]] = {
    "empty": (lambda _: b"", "expected a whole JSON document"),
    "truncated": (lambda data: data[: len(data) // 2], "expected a whole JSON document"),
    "no object": (lambda _: b"[]", "expected a JSON object"),
    "a number": (lambda _: b"1", "expected a JSON object"),
    "UTF-16": (lambda data: data.decode().encode("utf-16"), "expected UTF-8, got another byte"),
    "Latin-1": (lambda data: data.replace(b"Linux", b"Lin\xfcx"), "expected UTF-8, got another"),
    "a byte order mark": (lambda data: b"\xef\xbb\xbf" + data, "without a byte order mark"),
    "not a number": (lambda data: data.replace(b"0.0099", b"NaN", 1), "finite numbers, got NaN"),
    "infinity": (lambda data: data.replace(b"0.0099", b"-Infinity", 1), "got -Infinity"),
    "overflow": (lambda data: data.replace(b"0.0099", b"1e999", 1), "too large"),
    "a million digits": (
        lambda data: data.replace(b": 80,", b": " + b"8" * 10**6 + b",", 1),
        "below 2^63",
    ),
    "a key twice": (lambda d: d.replace(b"{", b'{"trial_id": "x",', 1), "got 'trial_id' twice"),
    "100,000 levels": (lambda _: b"[" * 100_000, "levels, got too many"),
    "too long": (lambda data: data + b" " * MOST_BYTES, "expected at most 5,000,000 bytes"),
    "merge conflict": (lambda data: b"<<<<<<< HEAD\n" + data, "expected a whole JSON document"),
    "NUL": (lambda data: data.replace(b"Linux", b"Li\\u0000ux"), "control characters"),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_file(project: Path, name: str) -> None:
    """Bytes that are no result are refused before anything is believed."""
    path = stored(project, sound(project))
    change, words = HOSTILE[name]
    path.write_bytes(change(path.read_bytes()))
    assert words in the_fault(project, path)


def test_words_that_a_terminal_would_obey(project: Path) -> None:
    """Are refused in the end of a sweep too, which commands print."""
    result = sound(project)
    stored(project, result)
    words = FailedSize(batch_size=64, words="\x1b[2J", of_memory=True)
    limit = BatchLimit(
        limit_version=LIMIT_VERSION,
        sweep_id=result.trial.model_copy(update={"batch_size": 0}).id,
        trial=result.trial,
        hardware="local",
        ended_at=dt.datetime(2026, 11, 21, tzinfo=dt.UTC),
        cause="memory",
        reason="out of memory",
        sizes=(32,),
        failed=(words,),
        environment=result.environment,
    )
    path = write_limit(project / "docs/data/results", limit)
    (fault,) = checked(project).faults
    assert (fault.path.name, "control characters" in fault.message) == (path.name, True)


def test_one_bad_file_is_one_line(project: Path) -> None:
    """Of files that no sum and no date can hold, each is a line; all others are read."""
    stored(project, sound(project))
    for size, (keys, value) in enumerate(
        (
            (("started_at",), "9999-12-31T23:59:59Z"),
            (("samples_seconds",), [1e290] * 60),
            (("energy",), {"readings": [_READING | {"joules": 1e300}]}),
        )
    ):
        path = stored(project, sound(project, batch_size=64 << size))
        document = json.loads(path.read_bytes())
        _set("measurement", *keys, to=value)(document)
        path.write_text(json.dumps(document), encoding="utf-8")
    found = checked(project)
    assert (len(found.faults), len(found.submissions)) == (3, 1)
    inputs = read_inputs(load_catalogue(project), [project / "docs/data/results"], project / "docs")
    assert (len(inputs.problems), len(inputs.stored)) == (3, 1)


def test_links_and_places(project: Path) -> None:
    """A link, a folder, another name and a place outside are refused."""
    path = stored(project, sound(project))
    link = path.with_name("link.json")
    link.symlink_to(path)
    assert "got a link" in the_fault(project, link)
    folder = path.with_name("folder.json")
    folder.mkdir()
    with pytest.raises(InputError, match="found nothing there"):
        checked(project, folder)
    renamed = path.with_name("renamed.json")
    shutil.copyfile(path, renamed)
    assert "expected the name net-training-cpu-b32-" in the_fault(project, renamed)
    outside = project / "local" / path.name
    outside.parent.mkdir()
    shutil.copyfile(path, outside)
    assert "got one outside" in the_fault(project, outside)
    with pytest.raises(InputError, match="found nothing there"):
        checked(project, project / "nowhere.json")


def test_a_copy_under_another_trial(project: Path) -> None:
    """The same times under another batch size were not measured."""
    stored(project, sound(project))
    path = stored(project, sound(project, batch_size=64))
    assert "expected times of its own, got those of net" in the_fault(project, path)


def test_a_machine_that_is_another(project: Path) -> None:
    """A machine that contradicts its spec is refused, unless the result says so itself."""
    result = sound(project, hardware="other")
    path = stored(project, result)
    assert "got 2 logical CPUs, not 4" in the_fault(project, path)
    said = result.model_copy(update={"contradictions": ("2 logical CPUs, not 4",)})
    (one,) = checked(project, stored(project, said)).submissions
    assert "measured as is: 2 logical CPUs, not 4" in one.remarks


def test_a_model_nobody_has(project: Path) -> None:
    """A result of an unknown model or machine has nothing to be held against."""
    unknown = sound(project)
    trial = unknown.trial.model_copy(update={"model": "nobody"})
    path = stored(project, unknown.model_copy(update={"trial": trial, "trial_id": trial.id}))
    assert "expected one whose spec has training, got 'nobody'" in the_fault(project, path)


def test_work_of_another_day(project: Path) -> None:
    """A result of another graph is refused as a submission, and remarked on where it is kept."""
    old = sound(project)
    trial = old.trial.model_copy(update={"graph_sha256": "c" * 64})
    path = stored(project, old.model_copy(update={"trial": trial, "trial_id": trial.id}))
    assert "graph_sha256: expected that of the model's ONNX file" in the_fault(project, path)
    found = checked(project)
    assert not found.faults
    assert any(
        remark.startswith("stale: graph_sha256") for remark in files_by_remark(found.submissions)
    )


def test_times_without_a_spread(project: Path) -> None:
    """Samples that are all the same are for a person to judge."""
    path = stored(project, sound(project, samples=[0.01] * 60))
    (one,) = checked(project, path).submissions
    assert "all 60 samples are the same: 10 ms" in one.remarks


def test_committed_results_are_sound() -> None:
    """Every result of this repository keeps the rules that strangers' have to keep."""
    folder = REPOSITORY / "docs/data/results"
    files = sorted((folder / "epyc-vm-2").glob("mnist-mlp-*.json"))[:5]
    found = check_results(load_catalogue(REPOSITORY), folder, files)
    assert found.faults == ()
    assert len(found.submissions) == len(files) > 0


def test_the_form_is_the_writers(project: Path) -> None:
    """Reading and writing a sound file again changes no byte."""
    path = stored(project, sound(project))
    assert serialise_result(parse_result(path.read_bytes(), path)) == path.read_bytes()
