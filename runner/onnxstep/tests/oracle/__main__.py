"""Write docs/operators.md; the command `make operators` runs this module."""

from __future__ import annotations

from oracle.judge import judge
from oracle.page import PATH, page
from oracle.suite import suite
from oracle.support import runs_on_the_cpu


def main() -> None:
    """Judge all tests of the suite, which takes half a minute, and write docs/operators.md."""
    verdicts = [judge(case) for case in suite()]
    PATH.write_text(page(verdicts, runs_on_the_cpu(verdicts)), encoding="utf-8")


if __name__ == "__main__":
    main()
