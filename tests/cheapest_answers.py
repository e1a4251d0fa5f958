"""Read what `epochcost cheapest --format json` prints."""

from __future__ import annotations

import json
from typing import Any


def flat(candidate: Any) -> dict[str, Any]:
    """The figures of a candidate in JSON, without its levels."""
    observed, cost = candidate["key"]["row"]["observed"], candidate["cost"]
    parts = candidate["key"]["interval"]["parts"]
    return {
        "hardware": observed["machine"]["hardware"],
        "kind": observed["kind"],
        "stack": observed["stack"],
        "precision": observed["precision"],
        "price": cost["price_id"],
        "assumed": cost["assumed"],
        "seconds": candidate["seconds"],
        "cost": cost["mean"],
        "low": cost["low"],
        "high": cost["high"],
        "least_sure": parts[0]["name"] if parts else None,
    }


def read_answer(text: str) -> Any:
    """The parsed JSON, with the choice and the candidates reduced by ``flat``."""
    answer = json.loads(text)
    candidates = [flat(candidate) for candidate in answer["offers"]["candidates"]]
    return answer | {"choice": flat(answer["choice"]), "candidates": candidates}
