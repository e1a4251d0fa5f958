"""The MkDocs plugin that adds the site of `epochcost.report.site` to the hand-written pages."""

from __future__ import annotations

import logging
import re
from collections.abc import Iterable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Literal

from jinja2 import Environment
from markupsafe import Markup
from mkdocs.config import config_options as option
from mkdocs.config import load_config
from mkdocs.config.base import Config
from mkdocs.config.defaults import MkDocsConfig
from mkdocs.exceptions import MkDocsException, PluginError
from mkdocs.livereload import LiveReloadServer
from mkdocs.plugins import BasePlugin, event_priority, get_plugin_logger
from mkdocs.structure.files import File, Files, get_files
from mkdocs.structure.pages import Page
from mkdocs.utils import CountHandler

from epochcost.analysis.difference.changes import publication
from epochcost.analysis.difference.revision import earlier_revision
from epochcost.analysis.inputs import RESULTS_URI, Inputs, read_inputs
from epochcost.analysis.prediction_trust import stale_fault
from epochcost.errors import EpochcostError, InputError
from epochcost.report import page_html, publishing
from epochcost.report.charts.drawing import Drawer
from epochcost.report.escape import page_title
from epochcost.report.site import Site, build, navigation
from epochcost.specs.document import display_path
from epochcost.specs.loader import BUNDLED, load_catalogue

NAME = "epochcost"
# `--strict` counts warnings of loggers under "mkdocs" only.
log = get_plugin_logger(__name__)
_LAST = -100
# Weights in the search by the beginning of an address. Pages that answer a question stand above
# explanations, and these above decisions and results of benchmarks.
_SEARCH_BOOSTS = {
    ("decisions/", "changelog", "explanation/performance", "sources/"): 0.1,
    ("explanation/", "reference/"): 0.5,
    ("prices.md", "spot.md", "rent-or-buy.md", "accuracy.md", "how-to/add-"): 2.0,
}
_BOOST_OF_CONTAINED_TITLES = 2.0


class ReportConfig(Config):  # type: ignore[no-untyped-call]
    """The plugin's options in mkdocs.yml; paths are relative to that file.

    ``published`` is the revision of the last published site.
    """

    cache = option.Type(str, default=".cache/epochcost/charts")
    published = option.Type(str, default="")


class EpochcostPlugin(BasePlugin[ReportConfig]):  # type: ignore[no-untyped-call]
    """Add the report's pages, files and charts to a MkDocs build."""

    _site: Site
    _drawer: Drawer
    _links: frozenset[Path]
    _tables: dict[str, list[str]]
    _scripts: set[str]
    _warnings: CountHandler
    # Whether the whole site is built, instead of a preview or only changed pages.
    _whole = False
    _folder: publishing.SiteFolder | None = None
    _place: Path
    _policy = publishing.POLICY_DRAFT

    def on_startup(self, *, command: Literal["build", "gh-deploy", "serve"], dirty: bool) -> None:
        """Omit the content security policy in previews, because MkDocs' server adds a script."""
        self._policy = "" if command == "serve" else publishing.POLICY_DRAFT
        self._whole = command == "build" and not dirty

    def on_config(self, config: MkDocsConfig) -> MkDocsConfig:
        """Add the report's templates to the theme, and choose the folder that the build fills.

        Raises PluginError if the folder cannot be created, and in strict mode also if the docs
        folder has a symbolic link.
        """
        frame = str(_templates(config) / "theme")
        if frame not in config.theme.dirs:
            config.theme.dirs.insert(0, frame)
        self._drawer = Drawer(self._cache(config) / "drawings")
        self._tables, self._scripts = {}, set()
        self._warnings = CountHandler(level=logging.WARNING)
        logging.getLogger("mkdocs").addHandler(self._warnings)
        self._report_symbolic_links(config)
        if self._whole:
            self._build_in_new_folder(config)
        return config

    def _build_in_new_folder(self, config: MkDocsConfig) -> None:
        self._place = Path(config.site_dir)
        try:
            self._folder = publishing.SiteFolder(self._place)
        except EpochcostError as error:
            raise PluginError(str(error)) from error
        config.site_dir = str(self._folder.new)

    def _report_symbolic_links(self, config: MkDocsConfig) -> None:
        faults = tuple(publishing.link_faults(Path(config.docs_dir).resolve()))
        if faults and config.strict:
            raise PluginError("\n".join(map(str, faults)))
        for fault in faults:
            log.warning(f"{fault} (left out of the site)")
        self._links = frozenset(fault.path for fault in faults)

    def on_files(self, files: Files, *, config: MkDocsConfig) -> Files:
        """Add the report, remove files that must not be published, and set a missing navigation."""
        project, docs = _project(config), Path(config.docs_dir)
        try:
            catalogue, results = load_catalogue(project), [docs / RESULTS_URI]
            inputs = read_inputs(catalogue, results, docs, self._cache(config))
            published = self.config.published or earlier_revision(project)
            since = publication(project, published)
            self._site = build(inputs, _templates(config), since)
            drawn = dict(page_html.drawings(self._site, self._drawer))
        except EpochcostError as error:
            raise PluginError(str(error)) from error
        stale = stale_fault(project, docs)
        for problem in (*inputs.problems, *([stale] if stale else [])):
            log.warning(str(problem))
        self._remove_unpublished(files, inputs, config)
        if config.nav is None:
            written = [file.src_uri for file in files.documentation_pages()]
            config.nav = navigation(self._site, written)
        for file in self._generated(config, drawn):
            if file.src_uri in files.src_uris:
                files.remove(files.src_uris[file.src_uri])
            files.append(file)
        return files

    def _remove_unpublished(self, files: Files, inputs: Inputs, config: MkDocsConfig) -> None:
        docs = Path(config.docs_dir).resolve()
        uris = (*config.extra_css, *map(str, config.extra_javascript))
        pictures = (config.theme.get(name) for name in ("logo", "favicon"))
        refusal_of = partial(
            publishing.refusal,
            links=self._links,
            named={docs / uri for uri in (*uris, *pictures) if isinstance(uri, str)},
            results=[folder.resolve() for folder in inputs.folders],
            read={path.resolve() for path in inputs.files},
        )
        warned = {Path(problem.partition(":")[0]).resolve() for problem in inputs.problems}
        warned |= self._links
        for file in [entry for entry in files if entry.src_dir == config.docs_dir]:
            path = docs / file.src_uri
            if refusal := refusal_of(path):
                files.remove(file)
                if path not in warned and not _excluded(file):
                    log.warning(f"{display_path(path)}: {refusal} (left out of the site)")

    def _generated(self, config: MkDocsConfig, drawn: Mapping[str, bytes]) -> Iterator[File]:
        site = self._site
        for uri, content in (*site.pages.items(), *site.files.items(), *drawn.items()):
            yield File.generated(config, uri, content=content)
        for uri, path in site.results.items():
            yield File.generated(config, uri, abs_src_path=str(path))

    def on_page_markdown(
        self,
        markdown: str,
        *,
        page: Page,
        config: MkDocsConfig,  # noqa: ARG002
        files: Files,
    ) -> str:
        """Cut the tables out of a generated page, and resolve their ``site:`` links."""
        if page.file.src_uri not in self._site.pages:
            return markdown
        text, tables = page_html.cut_tables(markdown)
        address = partial(_relative_address, files, page.file)
        self._tables[page.file.src_uri] = [
            page_html.resolve_links(table, address) for table in tables
        ]
        return text

    def on_page_content(
        self,
        html: str,
        *,
        page: Page,
        config: MkDocsConfig,  # noqa: ARG002
        files: Files,
    ) -> str:
        """Set a page's description and its weight in the search, and resolve ``site:`` links."""
        page.meta.setdefault("description", page_title(page_html.first_sentence(html)))
        boost = _search_boost(page.file.src_uri, self._site.sections.values())
        page.meta.setdefault("search", {"boost": boost})
        return page_html.resolve_links(html, partial(_relative_address, files, page.file))

    def on_env(self, env: Environment, *, config: MkDocsConfig, files: Files) -> Environment:  # noqa: ARG002
        """Set the content security policy of pages."""
        env.globals["content_security_policy"] = Markup(self._policy)  # noqa: S704  our own text
        return env

    def on_post_page(self, output: str, *, page: Page, config: MkDocsConfig) -> str:  # noqa: ARG002
        """Record a page's inline scripts for the security policy, then insert tables and charts."""
        self._scripts |= publishing.script_hashes(output)
        output = page_html.insert_tables(output, self._tables.get(page.file.src_uri, ()))
        return page_html.insert_charts(output, self._site.figures, self._drawer)

    def on_post_template(
        self,
        output_content: str,
        *,
        template_name: str,  # noqa: ARG002
        config: MkDocsConfig,  # noqa: ARG002
    ) -> str:
        """Record the inline scripts of a page of the theme, such as the 404 page."""
        self._scripts |= publishing.script_hashes(output_content)
        return output_content

    @event_priority(_LAST)
    def on_post_build(self, *, config: MkDocsConfig) -> None:
        """Allow only the pages' own inline scripts, then put the new site in place of the old.

        Only a build of the whole site replaces the old site, not a preview or a build of the
        changed pages. The old site also stays if a strict build had warnings.
        """
        publishing.write_policy(Path(config.site_dir), self._scripts)
        if self._folder is not None:
            self._replace_site_folder(self._folder, config)
        self._end()

    def _replace_site_folder(self, new_site: publishing.SiteFolder, config: MkDocsConfig) -> None:
        config.site_dir = str(self._place)
        # MkDocs will fail this build.
        if config.strict and self._warnings.counts:
            return
        try:
            new_site.replace()
        except EpochcostError as error:
            raise PluginError(str(error)) from error
        log.info(f"The site is in {config.site_dir}")

    def on_build_error(self, *, error: Exception) -> None:  # noqa: ARG002
        """Remove the folder of the new site, which the failed build leaves unfinished."""
        self._end()

    def _end(self) -> None:
        # Another plugin may have failed before this one started.
        if hasattr(self, "_warnings"):
            logging.getLogger("mkdocs").removeHandler(self._warnings)
        if self._folder is not None:
            self._folder.close()

    def on_serve(
        self,
        server: LiveReloadServer,
        *,
        config: MkDocsConfig,
        builder: object,  # noqa: ARG002
    ) -> LiveReloadServer:
        """Build the preview again when specs or templates change, as when docs and results do."""
        root = _project(config)
        for path in (root / "specs", root / "models", _templates(config)):
            if path.exists():
                server.watch(str(path))
        return server

    def contents(self, files: Files) -> Iterator[tuple[str, bytes]]:
        """Yield address and content of each file for other site generators; pages are Markdown."""
        for file in files:
            content = file.content_bytes
            if file.src_uri in self._site.pages:
                text = page_html.resolve_links(
                    content.decode(), partial(_relative_address, files, file)
                )
                content = page_html.insert_charts(text, self._site.figures, self._drawer).encode()
            if not _excluded(file):
                yield file.src_uri, content
        self._end()

    def _cache(self, config: MkDocsConfig) -> Path:
        return _project(config) / self.config.cache


def _project(config: MkDocsConfig) -> Path:
    return Path(config.config_file_path).parent


def _templates(config: MkDocsConfig) -> Path:
    """The templates of the project, or else of the package."""
    folder = _project(config) / "site_templates"
    return folder if folder.is_dir() else BUNDLED / "site_templates"


def _relative_address(files: Files, page: File, uri: str) -> str:
    file = files.get_file_from_path(uri)
    if file is None:
        log.warning(f"{page.src_uri}: a link leads to {uri}: no such file")
        return uri
    return file.url_relative_to(page)


def _search_boost(uri: str, sections: Iterable[Mapping[str, str]]) -> float:
    """A page's weight in the search; ``sections`` have the titles of their pages by address."""
    for beginnings, boost in _SEARCH_BOOSTS.items():
        if uri.startswith(beginnings):
            return boost
    titles = {address: title for section in sections for address, title in section.items()}
    # "ResNet-50" stands above "ResNet-50, fine-tuning all layers".
    own = titles.pop(uri, None)
    words = re.compile(rf"\b{re.escape(own)}\b", re.IGNORECASE) if own else None
    contained = words is not None and any(map(words.search, titles.values()))
    return _BOOST_OF_CONTAINED_TITLES if contained else 1.0


def _excluded(file: File) -> bool:
    return bool(file.inclusion.is_excluded())  # type: ignore[no-untyped-call]


def write_pages(config_file: Path, folder: Path) -> int:
    """Write the whole site that an mkdocs.yml configures as Markdown, for other site generators.

    Returns the number of files. Raises InputError for an invalid configuration, spec or ``folder``,
    and CapabilityError if a file cannot be written.
    """
    try:
        config = load_config(str(config_file))
        plugin = config.plugins.get(NAME)
        if not isinstance(plugin, EpochcostPlugin):
            raise InputError(f"{config_file}: expected the plugin {NAME}, found none")
        config = config.plugins.on_config(config)
        files = config.plugins.on_files(get_files(config), config=config)
        return publishing.write_site(plugin.contents(files), Path(config.docs_dir), folder)
    except MkDocsException as error:
        raise InputError(str(error)) from error
