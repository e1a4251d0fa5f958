"""Fields of the calculator's page that only some questions have, in Chromium."""

from __future__ import annotations

import pytest

from browsed_site import Site, wait_until
from integration.test_calculator_page import ask, ask_with, number, text_of

_PLANS, _NET = "data/calculator/plans.js", "data/calculator/net.js"


def test_a_token_of_a_longer_text_takes_longer(site: Site) -> None:
    """In the longest texts by the published factor, and halfway to these by half of its excess."""
    data = (site.folder / _NET).read_text("utf-8")
    longest = data.replace('"tokens":null', '"tokens":512,"longest":2048,"context":4096')
    slower = longest.replace('"seconds":', '"slower":1.5,"seconds":')
    question = "?model=net&prices=owned&software=onnxruntime&tokens="
    page = ask_with(site, _NET, slower, f"{question}512")
    times = [number(page.locator("tbody td"), 2)]
    for tokens in ("1280", "2048"):
        page.locator("[name=tokens]").fill(tokens)
        wait_until(page, f"location.search.includes('tokens={tokens}')")
        times.append(number(page.locator("tbody td"), 2))
    assert [time / times[0] for time in times] == pytest.approx([1, 2.5 * 1.25, 4 * 1.5])
    unknown = ask_with(site, _NET, longest, f"{question}512")
    assert unknown.locator("tbody tr").count()
    unknown.locator("[name=tokens]").fill("513")
    wait_until(unknown, "location.search.includes('tokens=513')")
    assert "No machine has both a time and a price" in text_of(unknown)
    other = ask_with(site, _NET, longest, "?model=published/paper&tokens=4096")
    other.locator("[name=model]").select_option("net")
    wait_until(other, "document.querySelector('[role=alert]')")
    assert other.get_by_role("alert").inner_text().endswith("a number from 1 to 2,048.")


@pytest.mark.parametrize(
    ("most", "tokens", "words"),
    [("200", 200, "reads only the first 200 tokens"), ("null", 400, "is not checked")],
)
def test_a_text_is_cut_after_the_tokens_that_the_model_reads(
    site: Site, most: str, tokens: int, words: str
) -> None:
    """The answer counts the tokens that the model reads; without a limit it states a doubt."""
    data = (site.folder / _NET).read_text("utf-8")
    known = data.replace('"tokens":null,"most_tokens":null', f'"tokens":128,"most_tokens":{most}')
    page = ask_with(site, _NET, known, "?model=net&job=batch&prices=owned&tokens=400")
    assert words in text_of(page)
    assert f"\N{MULTIPLICATION SIGN} {tokens} tokens" in text_of(page)
    served = ask_with(site, _NET, known, "?model=net&job=serve&prices=owned&tokens=400")
    assert words not in text_of(served)


def test_a_rate_of_interruptions_is_asked_for_spot_prices_only(site: Site) -> None:
    """With other prices the rate would change nothing, and its field is hidden."""
    page = ask(site, "?model=net&job=train&prices=spot")
    label = page.locator("label:has([name=interruptions])")
    assert label.get_attribute("hidden") is None
    page.locator("[name=prices]").select_option("on-demand", force=True)
    wait_until(page, "document.querySelector('[name=interruptions]').labels[0].hidden")
    page.locator("[name=prices]").select_option("", force=True)
    wait_until(page, "!document.querySelector('[name=interruptions]').labels[0].hidden")


def test_only_a_training_on_spot_machines_counts_interruptions(site: Site) -> None:
    """For other jobs the rate of an address is ignored, like its hidden field."""
    plans = (site.folder / _PLANS).read_text("utf-8")
    unknown = plans.replace('"interruptions":0.0', '"interruptions":null')
    for job, compared in (("train", True), ("batch", False), ("serve", False)):
        query = f"?model=net&job={job}&prices=on-demand&interruptions=1"
        text = text_of(ask_with(site, _PLANS, unknown, query))
        assert ("No price of this kind can be compared" in text) is not compared


def test_a_reserved_machine_is_said_to_be_paid_anyway(site: Site) -> None:
    """Beside the name of its plan."""
    plans = (site.folder / _PLANS).read_text("utf-8")
    reserved = plans.replace('"committed":false', '"committed":true')
    words = "paid for its whole term, used or not"
    assert words in text_of(ask_with(site, _PLANS, reserved, "?model=net&prices=on-demand"))
    assert words not in text_of(ask(site, "?model=net&prices=on-demand"))
