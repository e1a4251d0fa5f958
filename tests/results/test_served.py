"""Results under load keep all latencies, and their parts must agree."""

from __future__ import annotations

import datetime as dt
import json
from collections.abc import Callable
from pathlib import Path

import pytest
from pydantic import ValidationError

from epochcost.results.checks import CHECKS, Claim
from epochcost.results.records import DamagedResultError, Result, parse_result, serialise_result
from epochcost.results.served import TokenRun
from epochcost.specs.loader import load_catalogue
from served_results import (
    ASKED,
    LATENCIES,
    behind_an_engine,
    run,
    served,
    token_run,
    under_load,
)
from tiny_project import write_tiny_project

MakeResult = Callable[..., Result]
PATH = Path("net.json")


def test_a_served_result_survives_the_file(make_result: MakeResult) -> None:
    """A result under load is read back unchanged, and latencies are on one line."""
    result = under_load(make_result())
    text = serialise_result(result)
    assert parse_result(text, PATH) == result
    (line,) = (line for line in text.decode().splitlines() if "latencies_nanoseconds" in line)
    assert str(LATENCIES[-1]) in line


@pytest.mark.parametrize("change", ["latencies", "load", "served", "reported"])
def test_what_does_not_fit_together_is_damaged(make_result: MakeResult, change: str) -> None:
    """Edited latencies, a run that is missing, and LoadGen's runs without a load are refused."""
    stored = json.loads(serialise_result(under_load(make_result())))
    if change == "latencies":
        stored["measurement"]["served"]["latencies_nanoseconds"][50:] = [1] * 50
    elif change == "load":
        stored["trial"]["load"] = None
    elif change == "reported":
        stored["measurement"]["served"]["reported"] = 2
    else:
        stored["measurement"]["served"] = None
        stored["measurement"]["samples_seconds"] = [0.1, 0.2]
    with pytest.raises(DamagedResultError, match=r"LoadGen|one of 2 runs"):
        parse_result(json.dumps(stored).encode(), PATH)


@pytest.mark.parametrize(
    ("keys", "value"), [(("load", "maximum_delay_ms"), "soon"), (("threads",), -1)]
)
def test_a_fault_has_the_key_of_the_file(
    make_result: MakeResult, keys: tuple[str, ...], value: object
) -> None:
    """A fault in a trial's load or session settings names the key that the file has."""
    stored = json.loads(serialise_result(under_load(make_result())))
    table = stored["trial"]
    for key in keys[:-1]:
        table = table[key]
    table[keys[-1]] = value
    with pytest.raises(DamagedResultError, match=rf"trial\.{'.'.join(keys)}: "):
        parse_result(json.dumps(stored).encode(), PATH)


def test_more_latencies_than_a_file_holds_leave_the_statistics(make_result: MakeResult) -> None:
    """Without raw latencies a result still has LoadGen's statistics."""
    stored = json.loads(serialise_result(under_load(make_result())))
    stored["measurement"]["served"]["latencies_nanoseconds"] = []
    served = parse_result(json.dumps(stored).encode(), PATH).measurement.served
    assert served is not None
    assert served.run is not None
    assert served.run.latency.maximum_nanoseconds == LATENCIES[-1]


@pytest.mark.parametrize(("wall_seconds", "refused"), [(9.1, False), (8.0, True)])
def test_a_run_of_few_requests_lasts_as_long_as_its_rate_says(
    make_result: MakeResult, tmp_path: Path, wall_seconds: float, refused: bool
) -> None:
    """Ten requests at LoadGen's rate of one a second took nine seconds from first to last."""
    few = run().model_copy(update={"samples": 10, "queries": 10, "samples_per_second": 1.0})
    record = served().model_copy(update={"runs": (few,), "reported": 0})
    result = under_load(make_result())
    fields = {"served": record, "wall_seconds": wall_seconds}
    measurement = result.measurement.model_copy(update=fields)
    (duration,) = (check for check in CHECKS if check.__name__ == "_duration")
    catalogue = load_catalogue(write_tiny_project(tmp_path / "project"))
    changed = result.model_copy(update={"measurement": measurement})
    faults = duration(Claim(changed, catalogue, dt.datetime.now(dt.UTC)))
    assert any(faults) == refused


@pytest.mark.parametrize(
    ("first", "further", "keeps", "good"), [(91, 100, True, 0.91), (100, 90, False, 0.9)]
)
def test_a_request_is_good_if_both_latencies_are(
    first: int, further: int, keeps: bool, good: float
) -> None:
    """Of latencies of 1 to 100 ms, the 90th percentile is 91 ms, and the smaller bound counts."""
    tokens = token_run(500, 1, "scored").tokens
    assert tokens is not None
    bounds = {"first_token_ms": first, "token_ms": further, "percentile": 90}
    requests = ASKED.model_copy(update=bounds)
    assert (tokens.keeps(requests), tokens.good_share(requests)) == (keeps, good)
    unlogged = tokens.model_copy(update={"first_nanoseconds": (), "further_nanoseconds": ()})
    assert unlogged.good_share(requests) is None


def test_each_request_has_both_latencies() -> None:
    """A file in which only one of the two lists of latencies was removed is refused."""
    tokens = token_run(500, 1, "scored").tokens
    assert tokens is not None
    edited = tokens.model_dump() | {"further_nanoseconds": ()}
    with pytest.raises(ValidationError, match="further_nanoseconds should have 100 times, not 0"):
        TokenRun.model_validate(edited)


def test_a_run_of_requests_has_tokens(make_result: MakeResult) -> None:
    """A file of requests to an engine from which the tokens were removed is refused."""
    stored = json.loads(serialise_result(behind_an_engine(make_result(), {1.0: 1.0})))
    assert parse_result(json.dumps(stored).encode(), PATH)
    stored["measurement"]["served"]["runs"][0]["tokens"] = None
    with pytest.raises(DamagedResultError, match="runs that serve requests should have tokens"):
        parse_result(json.dumps(stored).encode(), PATH)
