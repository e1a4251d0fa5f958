"""Python's search for cycles, put off while many records are made.

Records form no cycles, and each search walks over all that there are: the time of all searches
grows faster than the number of records.
"""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def gc_paused() -> Iterator[None]:
    """Free by counting references alone until the end of the block."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            # What was made becomes old at once; the next search would walk over all of it.
            gc.freeze()
            gc.unfreeze()
            gc.enable()
