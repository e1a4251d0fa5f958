"""The lengths of texts in the calculator's page, in Chromium."""

from __future__ import annotations

import pytest

from browsed_site import Site
from integration.test_calculator_page import ask_with, number, text_of

_NET = "data/calculator/net.js"


def test_a_token_of_a_longer_text_takes_longer(site: Site) -> None:
    """In the longest texts by the published factor, and halfway to these by half of its excess."""
    data = (site.folder / _NET).read_text("utf-8")
    longest = data.replace('"tokens":null', '"tokens":512,"longest":2048,"context":4096')
    slower = longest.replace('"seconds":', '"slower":1.5,"seconds":')
    question = "?model=net&prices=owned&software=onnxruntime&tokens="
    times = [
        number(ask_with(site, _NET, slower, f"{question}{tokens}").locator("tbody td"), 2)
        for tokens in (512, 1280, 2048)
    ]
    assert [time / times[0] for time in times] == pytest.approx([1, 2.5 * 1.25, 4 * 1.5])
    assert ask_with(site, _NET, longest, f"{question}512").locator("tbody tr").count()
    none = ask_with(site, _NET, longest, f"{question}513")
    assert "No machine has both a time and a price" in text_of(none)


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
