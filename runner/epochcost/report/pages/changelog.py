"""The page "Changelog": the project's CHANGELOG.md, where it has one."""

from __future__ import annotations

from collections.abc import Iterator

from markupsafe import Markup

from epochcost.errors import InputError
from epochcost.report.pages.page import Page, Report

URI = "changelog.md"


def pages(report: Report) -> Iterator[Page]:
    """The one page; none without the file, which is as much the project's own as its docs."""
    text = changelog(report)
    if text:
        yield Page(
            uri=URI,
            title="Changelog",
            template="changelog.md.jinja",
            description="What each version of the program brought.",
            context={"text": Markup(text)},  # noqa: S704  hand-written Markdown, as docs/ is
        )


def changelog(report: Report) -> str:
    """The text below its first heading; empty where there is no such file.

    Raises InputError where it is a link: that may lead to anything on the machine that builds.
    """
    path = report.catalogue.models_folder.parent / "CHANGELOG.md"
    if path.is_symlink():
        raise InputError(f"{path}: demanded a file; got a link")
    if not path.is_file():
        return ""
    lines = path.read_text(encoding="utf-8", errors="replace").splitlines()
    headed = bool(lines) and lines[0].startswith("# ")
    return "\n".join(lines[headed:]).strip()
