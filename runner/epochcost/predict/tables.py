"""The tables of a project put together: rows on devices that are known, and names of others."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path

import tomli
from pydantic import ValidationError

from epochcost.errors import Fault, SpecError
from epochcost.graphs.profile import Profile
from epochcost.predict.design import Devices, Placed
from epochcost.predict.rates import Rate, read_profiles, read_rates, without_repeats
from epochcost.specs.catalogue import Catalogue
from epochcost.specs.observation import ObservationTable

Profiles = Mapping[tuple[str, str], Profile]


def placed(
    rates: Iterable[Rate], devices: Devices, profiles: Profiles
) -> tuple[list[Placed], frozenset[str]]:
    """The rates of examples on devices that are known, and the names of accelerators that are not.

    How long a run took to its target says as much of the training as of the machine: left out.
    """
    found, unknown = [], set()
    for rate in rates:
        if not rate.is_of_examples:
            continue
        device = devices.named(rate.accelerator)
        if device is None:
            unknown.add(rate.accelerator)
        else:
            found.append(Placed(rate, device, profiles.get((rate.model, rate.size))))
    return found, frozenset(unknown)


def placed_tables(
    catalogue: Catalogue, tables: Iterable[ObservationTable], devices: Devices
) -> tuple[Placed, ...]:
    """The rows of some tables of a project, repeats reduced to their medians.

    Raises InputError for a table that cannot be read.
    """
    found: list[Placed] = []
    for table in tables:
        folder = catalogue.files[f"observations/{table.id}"].parent
        profiles = read_profiles(folder / table.profiles) if table.profiles else {}
        rates = without_repeats(read_rates(folder / table.table))
        found += placed(rates, devices, profiles)[0]
    return tuple(found)


def table_faults(spec: Path) -> tuple[Fault, ...]:
    """What cannot be read in the files that a spec of observations names; none for a bad spec."""
    try:
        named = ObservationTable.model_validate(tomli.loads(spec.read_text(encoding="utf-8")))
    except (OSError, UnicodeDecodeError, tomli.TOMLDecodeError, ValidationError):
        return ()
    faults: list[Fault] = []
    for name, read in ((named.table, read_rates), (named.profiles, read_profiles)):
        if name is not None and (spec.parent / name).is_file():
            try:
                read(spec.parent / name)
            except SpecError as error:
                faults += error.faults
    return tuple(faults)
