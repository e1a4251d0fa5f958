"""The calculator's data as the browser gets them, for tests of them and of what it computes."""

from __future__ import annotations

import json
from typing import Any

from epochcost.report.pages.calculator import FOLDER, files
from epochcost.report.pages.page import Report


def data_of(report: Report) -> dict[str, Any]:
    """What each script says, by its address; the plans are those of ``plans``."""
    found = {}
    for uri, text in files(report):
        if uri.startswith(FOLDER):
            name, _, value = text.partition("=")
            assert name.startswith('window["epochcost')
            key = uri.removeprefix(f"{FOLDER}/").removesuffix(".js")
            found[key] = json.loads(value.removesuffix(";\n"))
    return found
