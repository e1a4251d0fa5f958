"""`epochcost trust`: compute how far predictions are from published rates, for the site's pages."""

from __future__ import annotations

import typer

from epochcost.analysis.prediction_trust import TRUST_FILE, as_text, trust_of
from epochcost.cli.bundled import own_catalogue
from epochcost.cli.terminal import DOCS, log
from epochcost.errors import InputError
from epochcost.results.files import unwritable, write_atomically
from epochcost.units import share


def trust() -> None:
    """Compute the errors of predictions that the site quotes.

    Each error compares a published rate with a prediction that does not use this rate. The command
    writes the errors to docs/data/prediction-trust.json, from which the site quotes them.

    Example: epochcost trust
    """
    path = DOCS / TRUST_FILE
    trust_values = trust_of(
        own_catalogue(), lambda withheld: log(f"withholding each {withheld} ...")
    )
    if trust_values is None:
        raise InputError(
            "specs/observations: expected rates on priced devices to withhold, found none"
        )
    path.parent.mkdir(parents=True, exist_ok=True)
    write_atomically(path, as_text(trust_values).encode(), unwritable)
    for withheld, errors in trust_values.all.items():
        typer.echo(
            f"each {withheld} withheld: half of {errors.rows:,} predictions within "
            f"x{1 + errors.median_percent / 100:.2f}, {share(errors.coverage)} of intervals held "
            "the truth"
        )
    typer.echo(f"written to {path}")
