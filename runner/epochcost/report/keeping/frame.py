"""The finished page: its HTML in the theme's frame with its figures, kept by all that it shows.

That is the page, the whole navigation, the configuration and the templates. It is kept under
Material alone, beside no plugin and no hook but those known here, and only where no template of the
site's own shows when it was built: what others do to a page cannot be said.
"""

from __future__ import annotations

import datetime as dt
import hashlib
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from jinja2 import Environment, Template
from mkdocs.commands.build import get_context
from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import Files
from mkdocs.structure.nav import Navigation, Section
from mkdocs.structure.pages import Page

from epochcost.report.additions import Shown
from epochcost.report.injection import inject, stamps
from epochcost.report.keeping.conversion import contents
from epochcost.report.keeping.entries import PLUGINS
from epochcost.report.keeping.origin import program
from epochcost.report.keeping.shelf import Shelf, digest
from epochcost.report.policy import script_hashes

# Plugins that do nothing to a page but what is said here.
KNOWN = frozenset({*PLUGINS, "epochcost"})
# Folders whose templates change with the version of their package only.
_PACKAGED = tuple(
    Path(spec.origin).parent
    for spec in (find_spec("material"), find_spec("mkdocs"))
    if spec is not None and spec.origin is not None
)
_OF_A_BUILD = re.compile(rb"build_date_utc|update_date")
# What a template reaches other pages by.
_OTHERS = re.compile(
    rb"\b(nav\w*|pages|previous_page|next_page|children|parent|ancestors|siblings|homepage)\b"
)
# What Material shows of no page but in its own frame.
_ITS_OWN = ("card", "card_words", "description")
# The next three say which pages there are, which `shown_by_all` says too; strictness shows nowhere.
_APART = ("plugins", "hooks", "theme", "exclude_docs", "draft_docs", "not_in_nav", "strict")


class _UnsaidError(Exception):
    """A value that cannot be said in JSON."""


def frame(config: MkDocsConfig, policy: str) -> str | None:
    """All that shapes every page's frame but the pages; None where a part cannot be said."""
    if config.theme.name != "material" or config.hooks or not KNOWN.issuperset(config.plugins):
        return None
    own = _own_files(config.theme.dirs)
    if any(_OF_A_BUILD.search(content) for content in own.values()):
        return None
    try:
        return digest(
            program(),
            {path: hashlib.sha256(content).hexdigest() for path, content in own.items()},
            {key: _said(value) for key, value in config.items() if key not in _APART},
            {name: _said(plugin.config) for name, plugin in config.plugins.items()},
            [_said(config.theme), config.theme.dirs, policy],
        )
    except _UnsaidError:
        return None


def _own_files(folders: Iterable[str]) -> dict[str, bytes]:
    """The contents of all files of folders that belong to no package."""
    own = (
        Path(folder)
        for folder in folders
        if not any(Path(folder).is_relative_to(package) for package in _PACKAGED)
    )
    return {
        str(path): path.read_bytes()
        for folder in own
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


def _said(value: Any) -> Any:
    """A value of the configuration as JSON has it."""
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, Mapping):
        return {str(key): _said(part) for key, part in value.items()}
    if isinstance(value, list | tuple):
        return [_said(part) for part in value]
    if isinstance(value, Path | dt.date) or type(value).__name__ == "Locale":
        return str(value)
    raise _UnsaidError


def shown_by_all(nav: Navigation, files: Files, config: MkDocsConfig) -> str:
    """The navigation, and of every page what others may show of it."""
    own = _own_files(config.theme.dirs).values()
    left_out = () if any(_OTHERS.search(content) for content in own) else _ITS_OWN
    pages = [file.page for file in files.documentation_pages() if file.page is not None]
    return digest([_entry(item) for item in nav.items], [_about(page, left_out) for page in pages])


def _entry(item: Any) -> Any:
    if isinstance(item, Section):
        return [item.title, [_entry(child) for child in item.children]]
    return [str(item.title), getattr(item, "url", None), isinstance(item, Page)]


def _about(page: Page, left_out: Sequence[str]) -> Any:
    return [
        page.file.src_uri,
        str(page.title),
        page.url,
        page.canonical_url,
        page.edit_url,
        repr({key: value for key, value in page.meta.items() if key not in left_out}),
    ]


class Finished(str):
    """A page with its figures; ``scripts`` are the source expressions of its inline scripts."""

    __slots__ = ("scripts",)
    scripts: frozenset[str]

    @classmethod
    def of(cls, page: str, scripts: Iterable[str]) -> Finished:
        """The page with what is known of it."""
        made = cls(page)
        made.scripts = frozenset(scripts)
        return made


def finished(page: str, figures: Mapping[str, Shown]) -> Finished:
    """The page of a frame with its figures, none of which runs a script."""
    return Finished.of(inject(page, figures), script_hashes(page))


@dataclass(frozen=True, slots=True)
class KeptEnvironment:
    """Stands in for the theme's environment where MkDocs takes a page's template from it."""

    environment: Environment
    shelf: Shelf
    shape: str
    figures: Mapping[str, Shown]

    def get_template(self, name: str) -> KeptTemplate:
        """As Jinja does."""
        template = self.environment.get_template(name)
        return KeptTemplate(template, self.shelf, self.shape, self.figures)


@dataclass(frozen=True, slots=True)
class KeptTemplate:
    """Renders a page only where it is not kept; what is no page is rendered always."""

    template: Template
    shelf: Shelf
    shape: str
    figures: Mapping[str, Shown]

    def render(self, context: Mapping[str, Any]) -> str:
        """As Jinja does, with the page's figures."""
        page = context.get("page")
        if not isinstance(page, Page):
            return self.template.render(context)
        key = self._key(page)
        kept = self.shelf.read(page.file.src_uri, key)
        if kept is not None:
            return Finished.of(*kept)
        return self._made(context, page, key)

    def keep(self, context: Mapping[str, Any]) -> bool:
        """Keep the page of a context; False where it was kept already."""
        page = context["page"]
        key = self._key(page)
        if self.shelf.has(page.file.src_uri, key):
            return False
        self._made(context, page, key)
        return True

    def _made(self, context: Mapping[str, Any], page: Page, key: str) -> Finished:
        made = finished(self.template.render(context), self.figures)
        self.shelf.write(page.file.src_uri, key, [made, sorted(made.scripts)])
        return made

    def _key(self, page: Page) -> str:
        return digest(self.shape, self.template.name, _shown(page), self._figures(page))

    def _figures(self, page: Page) -> list[str]:
        return stamps(page.content or "", self.figures)


def frame_from_the_last(
    env: Environment | KeptEnvironment, nav: Navigation, files: Files, config: MkDocsConfig
) -> None:
    """Keep finished pages, the last first, until one is kept: the build comes from the first.

    Nothing is done where the environment keeps none.
    """
    if not isinstance(env, KeptEnvironment):
        return
    pages = files.documentation_pages()
    for file in reversed(pages):
        page = file.page
        assert page is not None
        page.active = True
        context = config.plugins.on_page_context(
            get_context(nav, pages, config, page), page=page, config=config, nav=nav
        )
        new = env.get_template(page.meta.get("template", "main.html")).keep(context)
        page.active = False
        if not new:
            return


def _shown(page: Page) -> Any:
    """What only the page's own frame shows; the rest is in `shown_by_all`."""
    beside = (page.previous_page, page.next_page)
    return [
        page.file.src_uri,
        repr(page.meta),
        page.content,
        contents(page),
        [other and other.file.src_uri for other in beside],
    ]
