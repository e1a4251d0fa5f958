"""``--batch-size``: a size, a sweep, or words."""

from __future__ import annotations

import pytest

from epochcost.cli.terminal import batch_size_of
from epochcost.errors import InputError


def test_a_size_or_a_sweep_is_asked_for() -> None:
    """Nothing leaves the studies' sizes."""
    assert batch_size_of(None) is None
    assert batch_size_of("auto") == "auto"
    assert batch_size_of("64") == 64


@pytest.mark.parametrize("text", ["", "0", "-1", "x", "65537", "1e3", "\N{SUPERSCRIPT TWO}"])
def test_anything_else_is_refused_in_words(text: str) -> None:
    """What was demanded and what was got."""
    with pytest.raises(InputError, match="demanded auto, or a size from 1 to 65536; got"):
        batch_size_of(text)
