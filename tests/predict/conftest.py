"""The project's own catalogue, loaded once for all tests of predictions."""

from __future__ import annotations

from pathlib import Path

import pytest

from epochcost.specs.catalogue import Catalogue
from epochcost.specs.loader import load_catalogue


@pytest.fixture(scope="session")
def catalogue() -> Catalogue:
    """The project's catalogue."""
    return load_catalogue(Path(__file__).parents[2])
