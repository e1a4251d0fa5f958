"""A data set of ten examples with four numbers each, and its feed for batches of three."""

from __future__ import annotations

import numpy as np

from epochcost.train.pipeline import Examples, Feed, Part
from epochcost.train.teacher import InputField, TargetField

FIELD = InputField("image", (4,), np.dtype(np.float32), 0, 1)
TARGET = TargetField("target", (), np.dtype(np.int64), classes=10)
PART = Part(np.arange(40, dtype=np.uint8).reshape(10, 2, 2), np.arange(10))
DATA = Examples("made", PART, PART, "0" * 64, largest_value=39)
FEED = Feed(DATA, (FIELD,), TARGET, "rate", batch_size=3, evaluated_at_once=4, seed=0)
