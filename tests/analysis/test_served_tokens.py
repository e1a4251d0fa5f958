"""Decoders behind an engine: LoadGen's runs, their cost, and withheld figures."""

from __future__ import annotations

from pathlib import Path

import pytest

from analysis.test_tokens import phase_result
from epochcost.analysis.inputs import read_inputs
from epochcost.analysis.serving import ServedDecoder, served_decoders, serving_rows
from epochcost.cost.estimate import Estimate
from epochcost.specs.loader import load_catalogue
from report_project import store_results
from served_results import ASKED, behind_an_engine
from tiny_decoders import DECODER_SPEC
from tiny_project import price_text, write_tiny_project

# Factor of first tokens' times by rate; they are 1 to 100 ms at the lowest rate.
SLOWER = {2.0: 1.0, 4.0: 2.0, 8.0: 8.0}


def asked_project(root: Path, slower: dict[float, float]) -> None:
    """A decoder measured at these rates on a machine of a dollar an hour."""
    write_tiny_project(root)
    (root / "specs/models/tiny.toml").write_text(DECODER_SPEC)
    (root / "specs/prices").mkdir(exist_ok=True)
    (root / "specs/prices/list.toml").write_text(price_text("local", "1"))
    store_results(root, [behind_an_engine(phase_result("decode", 8, 4, 0.1), slower)])


def served(root: Path, slower: dict[float, float]) -> ServedDecoder:
    """The project's served decoders."""
    asked_project(root, slower)
    catalogue = load_catalogue(root)
    inputs = read_inputs(catalogue, [root / "docs/data/results"], root)
    assert not serving_rows(inputs), "tokens are no inferences of a batch"
    (decoder,) = served_decoders(inputs)
    return decoder


@pytest.fixture(scope="module")
def decoder(tmp_path_factory: pytest.TempPathFactory) -> ServedDecoder:
    """A decoder measured at three rates."""
    return served(tmp_path_factory.mktemp("served"), SLOWER)


def test_rates_ascend_to_the_highest(decoder: ServedDecoder) -> None:
    """The highest rate is last; shares of it come before."""
    assert [float(rate.per_second) for rate in decoder.rates] == [2, 4, 8]
    assert decoder.highest is decoder.rates[-1]
    assert decoder.start_seconds == 1.5


def test_a_rate_counts_the_requests_after_the_first(decoder: ServedDecoder) -> None:
    """LoadGen's rate of 2 a second is that of 99 requests of a hundred in 49.5 seconds."""
    lowest = decoder.rates[0]
    assert (lowest.requests, lowest.seconds) == (100, 49.5)
    assert lowest.written_per_second == 2 * lowest.tokens.written / 100


def test_percentiles_are_loadgens_and_withheld_of_few(decoder: ServedDecoder) -> None:
    """Of a hundred requests ten exceed the 90th percentile, and one the 99th."""
    lowest = decoder.rates[0]
    assert lowest.first_seconds(50) == pytest.approx(0.051)
    assert lowest.first_seconds(90) == pytest.approx(0.091)
    assert lowest.first_seconds(99) is None
    assert decoder.rates[1].first_seconds(90) == pytest.approx(0.182)


def test_cost_is_the_hour_over_the_tokens(decoder: ServedDecoder) -> None:
    """A dollar an hour for 2 requests of 50 tokens a second: 1e6 / 360,000 dollars."""
    cost = decoder.per_million(decoder.rates[0])
    assert isinstance(cost, Estimate)
    assert float(cost.mean) == pytest.approx(1e6 / 360_000)
    assert cost.low == cost.mean
    highest = decoder.per_million(decoder.rates[-1])
    assert isinstance(highest, Estimate)
    assert float(highest.mean / highest.low) == pytest.approx(1.05)


def test_an_ended_offer_is_no_price(tmp_path: Path) -> None:
    """The cost follows the offered price, although an ended offer was lower."""
    asked_project(tmp_path, SLOWER)
    ended = price_text("local", "0.5").replace("as_of", "valid_until = 2026-11-02\nas_of", 1)
    ended = ended.replace("local-11-01", "ended").replace("on-demand", "managed")
    (tmp_path / "specs/prices/ended.toml").write_text(ended)
    inputs = read_inputs(load_catalogue(tmp_path), [tmp_path / "docs/data/results"], tmp_path)
    (decoder,) = served_decoders(inputs)
    assert decoder.price is not None
    assert (decoder.price.id, decoder.price.flaw) == ("local-11-01", "")


def test_bounds_that_no_rate_keeps(tmp_path: Path) -> None:
    """There is no highest rate and no cost, and the result is still listed."""
    unbounded = served(tmp_path, {})
    assert unbounded.highest is None
    assert unbounded.rates == ()
    assert unbounded.requests == ASKED
