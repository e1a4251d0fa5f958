"""Sound files of every kind that a folder of results holds, and damages that know their form.

Each number is a damage, the same at each call: values become others of their kind or of none, keys
and items come, go and change places, clocks are scaled together, bytes are overwritten. Most are
then signed again, as a forger would: ids and fingerprints fit what stands beside them.
"""

from __future__ import annotations

import datetime as dt
import json
import math
import random
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from epochcost.plan.digests import graph_digests, work_sha256
from epochcost.plan.trial import Trial
from epochcost.results.ceilings import ceilings_path
from epochcost.results.conditions import Conditions, Energy, MeteredEnergy
from epochcost.results.environment import Gpu, Instance, Processor, fingerprint
from epochcost.results.format import serialise_result
from epochcost.results.limits import LIMIT_VERSION, BatchLimit, FailedSize, limit_path
from epochcost.results.plausibility import contradictions
from epochcost.results.records import (
    Agreement,
    OutputDifference,
    Pinning,
    Placement,
    Result,
)
from epochcost.results.rounds import add_round
from epochcost.results.store import ResultStore
from epochcost.specs.catalogue import Catalogue
from kept_ceilings import make_ceilings, with_own_fingerprint
from report_project import HOSTILE, make_result
from served_results import under_load

Document = Any
Change = Callable[[Document, random.Random, Sequence[Document]], None]
_STEPS = (0.0099, 0.0101, 0.0100, 0.0102, 0.0098) * 6
_NUMBERS = (
    *(0, -1, 1, 2, 7, 2**31, 2**53, 2**63 - 1, 2**63, 10**30, 0.5, -0.0, 1e-300, 1e-9, 1e9, 1e18),
    *(1e300, -1e300, math.nan, math.inf, 1795000000),
)
_FACTORS = (0.05, 0.5, 0.9, 1.1, 2.0, 10.0, 1e3, 1e6, 1e290, 1e-3, 1e-6)
_TEXTS = (
    *("", "x", "2", "0" * 16, "f" * 40, "x" * 5_000, "x" * 30_000, HOSTILE, "\0", "\x1b[2J"),
    *("../../../etc/passwd", " =1+1", "@name #1", "\ud800", "\u202e", "é", "local", "box"),
    *("9999-12-31T23:59:59Z", "0001-01-01T00:00:00+14:00", "1970-01-01T00:00:00Z", "2026-11-20"),
    *("2026-11-20T12:00:00Z", "2199-12-31T23:59:59-12:00", "2026-11-20T12:00:00", "1e-999999999"),
)
# Names with which nothing is written elsewhere.
_PLAIN = re.compile(r"[\w-][\w.-]{0,80}/([\w-]+/)?[\w-][\w.-]{0,150}\.json", re.ASCII)
_OTHERS: tuple[Any, ...] = (None, True, False, [], {}, [[]], {"a": 1}, [None])


@dataclass(frozen=True)
class Kept:
    """A file below a folder of results."""

    name: str
    data: bytes


def corpus(catalogue: Catalogue) -> list[Kept]:
    """One of every form: rounds, meters, pinned CPUs, another precision, epochs, LoadGen, a GPU."""
    results = [_of_here(catalogue, one, number) for number, one in enumerate(_results())]
    limit, ceilings = _limit(results[0]), make_ceilings(results[0].environment)
    return [
        *(Kept(_name(one), serialise_result(one)) for one in results),
        Kept(limit_path(Path(), limit).as_posix(), limit.model_dump_json().encode()),
        Kept(ceilings_path(Path(), ceilings).as_posix(), ceilings.model_dump_json().encode()),
    ]


def _results() -> Iterator[Result]:
    plain = _watched(make_result(samples=_STEPS))
    yield plain
    yield _watched(make_result(samples=_STEPS, batch_size=128), others_cpus=0.5, steal_share=0.02)
    yield _in_rounds(make_result(samples=_STEPS, batch_size=64))
    pinned = make_result(mode="inference", samples=_STEPS, batch_size=1, vcpus=1)
    yield _with(_watched(pinned), pinning=Pinning(cpus=(0,), siblings=(1,), cores=1, threads=1))
    halved = make_result(mode="inference", samples=_STEPS, batch_size=1, precision="bf16")
    off = OutputDifference(output="logits", maximum_absolute=0.1, relative_to_norm=0.01)
    yield _with(_watched(halved), agreement=Agreement(examples=32, outputs=(off,)))
    yield under_load(make_result(batch_size=8))
    yield _on_box(_watched(make_result(hardware="box", samples=_STEPS)))


def _with(result: Result, **measured: Any) -> Result:
    measurement = result.measurement.model_copy(update=measured)
    return result.model_copy(update={"measurement": measurement})


def _watched(result: Result, **conditions: Any) -> Result:
    watched = Conditions(seconds=0.32, throttles=(), group_memory_bytes=2**30, **conditions)
    rapl = MeteredEnergy(meter="RAPL", of="cpu", joules=9.0, seconds=0.32)
    energy = Energy(readings=(rapl,), unknown={"NVML": "no GPU"})
    taken = result.measurement.steps_taken + 1
    return _with(
        result, conditions=watched, energy=energy, peak_memory_bytes=2**28, steps_taken=taken
    )


def _in_rounds(result: Result) -> Result:
    one = _watched(result).measurement
    later = one.model_copy(update={"started_at": one.started_at + dt.timedelta(minutes=1)})
    joined = add_round(add_round(None, one, 0.02), later, 0.02)
    return result.model_copy(update={"measurement": joined})


def _on_box(result: Result) -> Result:
    """On a GPU of a declared machine."""
    gpu = Gpu(name="Some GPU", memory_bytes=12 * 2**30, driver="1", pci_address="0:1")
    host = result.environment.model_copy(
        update={"logical_cpus": 8, "memory_bytes": 2**34, "gpus": (gpu,), "cpu": "Some CPU"}
    )
    nodes = {"CUDAExecutionProvider": {"Gemm": 3}, "CPUExecutionProvider": {"MemcpyToHost": 1}}
    placement = Placement(provider="CUDAExecutionProvider", nodes_by_provider=nodes)
    trial = result.trial.model_copy(update={"provider": "cuda"})
    placed = _with(result, placement=placement)
    return placed.model_copy(update={"environment": host, "trial": trial})


def _of_here(catalogue: Catalogue, made: Result, number: int) -> Result:
    """With the digests of this project's model, times of its own, and all that results say."""
    trial = made.trial.model_copy(
        update={
            "graph_sha256": graph_digests(catalogue, ["net"])["net"],
            "spec_sha256": work_sha256(catalogue.models["net"], made.trial.mode),
        }
    )
    host = made.environment.model_copy(
        update={
            "packages": {"numpy": "2.3.5"},
            "processor": Processor(sockets=1, governor="performance"),
            "instance": Instance(provider="AWS EC2", type="t3.large")
            if not made.environment.gpus
            else None,
            "timer_step_seconds": 4e-8,
            "revision": "0123456789" * 4,
            "unknown": {"container": "nothing tells"},
        }
    )
    host = with_own_fingerprint(host)
    placement = made.measurement.placement
    if not placement.nodes_by_provider:
        placement = Placement(
            provider=placement.provider, nodes_by_provider={placement.provider: {"Gemm": 3}}
        )
    samples = tuple(one * (1 + number / 1000) for one in made.measurement.samples_seconds)
    result = _with(made, placement=placement, samples_seconds=samples)
    said = contradictions(catalogue.hardware[made.hardware], host)
    return result.model_copy(
        update={"trial": trial, "trial_id": trial.id, "environment": host, "contradictions": said}
    )


def _limit(result: Result) -> BatchLimit:
    return BatchLimit(
        limit_version=LIMIT_VERSION,
        sweep_id=result.trial.model_copy(update={"batch_size": 0}).id,
        trial=result.trial,
        hardware="local",
        ended_at=dt.datetime(2026, 11, 21, tzinfo=dt.UTC),
        cause="memory",
        reason="batch 128 ran out of memory",
        sizes=(32, 64),
        failed=(FailedSize(batch_size=128, words="bad_alloc", of_memory=True),),
        environment=result.environment,
    )


def _name(result: Result) -> str:
    store = ResultStore(Path())
    return store.path_of(result.trial, result.hardware, result.environment.fingerprint).as_posix()


def damaged(files: Sequence[Kept], number: int) -> Kept:
    """The damaged file of a number, under the name that the store would give it."""
    rng = random.Random(number)
    documents = [json.loads(one.data) for one in files]
    at = rng.randrange(len(files))
    document = documents[at]
    for _ in range(rng.choice((1, 1, 1, 2, 3))):
        change = rng.choice((_value, _value, _value, _item, _key, _crossed, _scaled))
        change(document, rng, documents)
    name = files[at].name
    _jittered(document, number)
    if rng.random() < 0.7:
        signed = _signed(document)
        name = signed if signed and _PLAIN.fullmatch(signed) else name
    data = json.dumps(document, ensure_ascii=rng.random() < 0.5).encode(errors="surrogatepass")
    return Kept(name, _bytes(data, rng) if rng.random() < 0.08 else data)


def _places(value: Document) -> list[tuple[Any, Any]]:
    """Every table or list of a document with each of its keys or indices."""
    found: list[tuple[Any, Any]] = []
    pending = [value]
    while pending:
        holder = pending.pop()
        keys = list(holder) if isinstance(holder, dict) else range(len(holder))
        # Samples are most of a file: a few of them stand for all.
        for key in list(keys)[:40]:
            found.append((holder, key))
            if isinstance(holder[key], dict | list):
                pending.append(holder[key])
    return found


def _value(document: Document, rng: random.Random, _: Sequence[Document]) -> None:
    holder, key = rng.choice(_places(document))
    holder[key] = _another(holder[key], rng)


def _another(value: Any, rng: random.Random) -> Any:
    if rng.random() < 0.2:
        return rng.choice((*_NUMBERS, *_TEXTS, *_OTHERS))
    if isinstance(value, bool) or value is None:
        return rng.choice((True, False, None, 1, "true", 0.5))
    if isinstance(value, int | float):
        scaled = value * rng.choice(_FACTORS)
        whole = isinstance(value, int) and math.isfinite(scaled) and rng.random() < 0.8
        return rng.choice((rng.choice(_NUMBERS), round(scaled) if whole else scaled))
    return rng.choice(_TEXTS) if isinstance(value, str) else rng.choice(_OTHERS)


def _item(document: Document, rng: random.Random, _: Sequence[Document]) -> None:
    """An item of a list goes, comes twice or a thousand times, or all change places."""
    lists = [holder[key] for holder, key in _places(document) if isinstance(holder[key], list)]
    chosen = rng.choice([one for one in lists if one] or [[0]])
    index = rng.randrange(len(chosen))
    kind = rng.choice(("remove", "repeat", "many", "shuffle", "empty"))
    if kind == "remove":
        del chosen[index]
    elif kind == "shuffle":
        rng.shuffle(chosen)
    elif kind == "empty":
        chosen.clear()
    else:
        chosen.extend([chosen[index]] * (1 if kind == "repeat" else 1_000))


def _key(document: Document, rng: random.Random, _: Sequence[Document]) -> None:
    """A key goes, is misspelt, or comes that nobody knows."""
    tables = [(holder, key) for holder, key in _places(document) if isinstance(holder, dict)]
    table, key = rng.choice(tables)
    kind = rng.choice(("remove", "rename", "add"))
    value = table[key] if kind == "add" else table.pop(key)
    if kind != "remove":
        table[rng.choice((f"{key}_", *_TEXTS))] = value


def _crossed(document: Document, rng: random.Random, documents: Sequence[Document]) -> None:
    """A part is that of another file, which is sound by itself."""
    other = rng.choice(documents)
    if not (isinstance(document, dict) and isinstance(other, dict)):
        return
    shared = [key for key in document if key in other]
    if not shared:
        return
    key = rng.choice(shared)
    mine, theirs = document[key], other[key]
    if isinstance(mine, dict) and isinstance(theirs, dict) and theirs and rng.random() < 0.8:
        inner = rng.choice(list(theirs))
        mine[inner] = json.loads(json.dumps(theirs[inner]))
    else:
        document[key] = json.loads(json.dumps(theirs))


def _scaled(document: Document, rng: random.Random, _: Sequence[Document]) -> None:
    """All times, or those of the samples alone, are so many times as long."""
    factor = rng.choice(_FACTORS)
    only = rng.random() < 0.3
    for holder, key in _places(document):
        name, value = str(key), holder[key]
        if only and name != "samples_seconds":
            continue
        if name.endswith("seconds") and isinstance(value, float):
            holder[key] = value * factor
        elif name.endswith("seconds") and isinstance(value, list):
            holder[key] = [one * factor if isinstance(one, float) else one for one in value]


def _jittered(document: Document, number: int) -> None:
    """Samples of its own, that no damage hides behind being a copy."""
    measured = document.get("measurement") if isinstance(document, dict) else None
    samples = measured.get("samples_seconds") if isinstance(measured, dict) else None
    if isinstance(samples, list):
        samples[:] = [
            one * (1 + 1e-9 * (number + 1)) if isinstance(one, float) else one for one in samples
        ]


def _signed(document: Document) -> str | None:
    """Make ids and fingerprint fit, as far as the damage leaves them a meaning; the file's name."""
    try:
        return _fitting(document)
    except (ValueError, TypeError, KeyError, AttributeError, OverflowError, IndexError):
        return None


def _fitting(document: Document) -> str:
    host, machine = document["environment"], document["hardware"]
    parts = (host["physical_cores"], host["logical_cpus"], host["memory_bytes"] or 2**33)
    gpus = tuple(Gpu.model_validate(one) for one in host.get("gpus", ()))
    digits = host["fingerprint"] = fingerprint(host["cpu"], *parts, gpus)
    if "trial" not in document:
        return f"{machine}/ceilings/{document['provider']}-{digits[:4]}.json"
    trial = Trial.model_validate(document["trial"])
    if "sweep_id" in document:
        document["sweep_id"] = trial.model_copy(update={"batch_size": 0}).id
        return f"{machine}/limits/x-{digits[:4]}.json"
    document["trial_id"] = trial.id
    return ResultStore(Path()).path_of(trial, str(machine), digits).as_posix()


def _bytes(data: bytes, rng: random.Random) -> bytes:
    start = rng.randrange(len(data) + 1)
    end = min(len(data), start + rng.choice((0, 1, 2, 8, 64, 10_000)))
    inserted = rng.choice((b"", rng.randbytes(end - start), data[start:end] * 2, b"\xef\xbb\xbf"))
    return data[:start] + inserted + data[end:]
