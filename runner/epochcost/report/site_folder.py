"""The folder of a site: built beside its place, which it takes once it is whole.

A build that fails or is killed leaves the former site as it was. What a killed one leaves beside
it, the next build of the same site removes.
"""

from __future__ import annotations

import contextlib
import os
import shutil
from pathlib import Path

from epochcost.errors import CapabilityError
from epochcost.results.files import locked, workplace


class SiteFolder:
    """A site's place and, beside it on the same disk, the folder that its next build fills."""

    def __init__(self, place: Path) -> None:
        """Make the folder beside ``place``; raises CapabilityError where it could not be moved."""
        self._place = place.resolve()
        if os.path.ismount(self._place):
            raise CapabilityError(
                f"{place}: expected a folder that a new one can replace, got a mounted disk: name "
                "a folder on it with --site-dir"
            )
        self._kept = contextlib.ExitStack()
        beside = workplace(self._place.parent, f".{self._place.name[:64]}.building-")
        try:
            self._folder = self._kept.enter_context(beside)
        except OSError as error:
            raise _refusal(place, error) from error
        self.new = self._folder / "new"

    def replace(self) -> None:
        """Put the new folder into its place; raises CapabilityError where it cannot be moved."""
        try:
            with locked(self._place.parent):
                if self._place.exists():
                    shutil.copymode(self._place, self.new)
                    self._place.rename(self._folder / "former")
                self.new.rename(self._place)
        except OSError as error:
            raise _refusal(self._place, error) from error

    def close(self) -> None:
        """Remove the folder beside the place, with the former site or a new one that failed."""
        self._kept.close()


def _refusal(place: Path, error: OSError) -> CapabilityError:
    return CapabilityError(
        f"{place}: expected room and the right to build a folder beside it that replaces it, got "
        f"{error.strerror or error}: free some space, or name another folder with --site-dir"
    )
