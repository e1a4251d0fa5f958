"""Words that a fault's message must not have: those of the library that validates."""

from __future__ import annotations

import re

PYDANTIC = re.compile(r"Input|\bvalid\b|instance|dictionary|pydantic|Decimal")
QUOTED = re.compile(r""""(?:[^"\\]|\\.)*"|'[^']*'""")


def is_ours(message: str) -> bool:
    """Whether a message, apart from quotations, has none of the library's words."""
    return not PYDANTIC.search(QUOTED.sub("", message))
