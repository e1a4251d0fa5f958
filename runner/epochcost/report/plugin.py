"""The MkDocs plugin: adds the site of `epochcost.report.site` to the hand-written pages.

Thin: reading and building happen in the library. Importing it loads neither onnxruntime nor torch.
"""

from __future__ import annotations

from functools import partial
from pathlib import Path, PurePosixPath
from typing import Literal

from jinja2 import Environment, FileSystemBytecodeCache
from markupsafe import Markup
from mkdocs.config import config_options as option
from mkdocs.config import load_config
from mkdocs.config.base import Config
from mkdocs.config.defaults import MkDocsConfig
from mkdocs.exceptions import MkDocsException, PluginError
from mkdocs.livereload import LiveReloadServer
from mkdocs.plugins import BasePlugin, get_plugin_logger
from mkdocs.structure.files import File, Files, get_files
from mkdocs.structure.nav import Navigation
from mkdocs.structure.pages import Page

from epochcost.errors import EpochcostError, InputError
from epochcost.report.additions import Additions
from epochcost.report.charts.drawing import Drawer
from epochcost.report.export import write_site
from epochcost.report.injection import with_addresses
from epochcost.report.keeping.builds import Kept
from epochcost.report.keeping.copying import Copying, begun_copying
from epochcost.report.keeping.frame import Finished, finished, frame_from_the_last
from epochcost.report.keeping.origin import origin
from epochcost.report.keeping.report import KeptReport
from epochcost.report.late_file import LateFile
from epochcost.report.navigation import navigation
from epochcost.report.policy import DRAFT, complete, script_hashes
from epochcost.report.repository import earlier_revision
from epochcost.report.sources import PACKAGED, Sources

NAME = "epochcost"
# `--strict` counts warnings of loggers under "mkdocs" only.
log = get_plugin_logger(__name__)


class ReportConfig(Config):  # type: ignore[no-untyped-call]
    """The plugin's options in mkdocs.yml; paths are relative to that file.

    ``root`` is the folder with ``specs/`` and ``models/``; ``cache`` keeps drawn
    charts, counted graphs and compiled templates. ``published`` is the revision that was published
    last, from which the page of changes counts. Where
    ``templates`` is left out, the project's ``site_templates`` are taken, else the package's.
    """

    root = option.Type(str, default=".")
    results = option.ListOfItems(option.Type(str), default=["docs/data/results"])
    templates = option.Optional(option.Type(str))
    cache = option.Type(str, default=".cache/epochcost/charts")
    published = option.Type(str, default="")


class EpochcostPlugin(BasePlugin[ReportConfig]):  # type: ignore[no-untyped-call]
    """Adds the report's pages, files and charts."""

    _added: Additions
    _report: KeptReport
    # What a report that was built anew was made from; None where nothing is to be kept of it.
    _origin: str | None
    _scripts: set[str]
    _kept: Kept
    _copying: Copying | None
    _nav: Navigation
    _policy = DRAFT

    def on_startup(self, *, command: Literal["build", "gh-deploy", "serve"], dirty: bool) -> None:  # noqa: ARG002
        """Previewed pages have no policy: the server adds a script of its own to each."""
        self._policy = "" if command == "serve" else DRAFT

    def on_config(self, config: MkDocsConfig) -> MkDocsConfig:
        """Let the theme take the pages' frame from the templates, unless it does already."""
        frame = str(self._templates(config) / "theme")
        if frame not in config.theme.dirs:
            config.theme.dirs.insert(0, frame)
        return config

    def on_files(self, files: Files, *, config: MkDocsConfig) -> Files:
        """Build the report and add its pages and files; set the navigation if there is none."""
        self.prepare(config)
        self._added.draw()
        if config.nav is None:
            written = [file.src_uri for file in files.documentation_pages()]
            config.nav = navigation(self._added, written)
        for file in self._files(config):
            if file.src_uri in files.src_uris:
                files.remove(files.src_uris[file.src_uri])
            files.append(file)
        return files

    def on_nav(self, nav: Navigation, *, config: MkDocsConfig, files: Files) -> Navigation:
        """Take what is kept of the pages' HTML."""
        self._nav = nav
        self._kept = Kept.under(self._kept_in(config))
        self._kept.convert(config, files)
        return nav

    def on_env(self, env: Environment, *, config: MkDocsConfig, files: Files) -> Environment:
        """Compile the theme's templates once for many builds; give them the pages' policy."""
        folder = self._path(config, self.config.cache) / "templates"
        folder.mkdir(parents=True, exist_ok=True)
        env.bytecode_cache = FileSystemBytecodeCache(str(folder))
        env.globals["content_security_policy"] = Markup(self._policy)  # noqa: S704  our own text
        self._scripts = set()
        pages = (self._nav, files)
        kept = self._kept.frame(env, config, pages, self._policy, self._added.figures)
        then = partial(frame_from_the_last, kept, *pages, config)
        self._copying = begun_copying(files, self._report, config, self._kept_in(config), then)
        return kept

    def on_page_content(
        self,
        html: str,
        *,
        page: Page,
        config: MkDocsConfig,  # noqa: ARG002
        files: Files,
    ) -> str:
        """Give links in HTML their addresses; MkDocs has checked those in Markdown only."""
        return with_addresses(html, partial(_address, files, page.file.src_uri))

    def on_post_page(self, output: str, *, page: Page, config: MkDocsConfig) -> str:  # noqa: ARG002
        """Put the figures into a page that was not kept with them."""
        whole = output if isinstance(output, Finished) else finished(output, self._added.figures)
        self._scripts |= whole.scripts
        return whole

    def on_post_template(
        self,
        output_content: str,
        *,
        template_name: str,  # noqa: ARG002
        config: MkDocsConfig,  # noqa: ARG002
    ) -> str:
        """Pages of the theme, such as that for addresses that lead nowhere, run scripts too."""
        self._scripts |= script_hashes(output_content)
        return output_content

    def on_post_build(self, *, config: MkDocsConfig) -> None:
        """Let the pages run the inline scripts that they have, and no others."""
        if self._copying is not None:
            self._copying.finish()
        complete(Path(config.site_dir), self._scripts)
        # What was edited since the report was read stands in none of its pages.
        if self._origin is not None and self._origin == origin(self._sources(config)):
            self._report.keep(self._origin, self._added)
        self._report.tidy()
        self._kept.tidy()

    def on_serve(
        self,
        server: LiveReloadServer,
        *,
        config: MkDocsConfig,
        builder: object,  # noqa: ARG002
    ) -> LiveReloadServer:
        """Build again when specs, results or templates change."""
        for folder in ("specs", "models"):
            _watch(server, self._path(config, self.config.root) / folder)
        for folder in self.config.results:
            _watch(server, self._path(config, folder))
        _watch(server, self._templates(config))
        return server

    def prepare(self, config: MkDocsConfig) -> None:
        """Take the report as it is kept, or build it; what is left out of it is a warning."""
        sources, drawer = self._sources(config), Drawer(self._path(config, self.config.cache))
        folder = self._kept_in(config)
        self._report = KeptReport.under(folder, drawer)
        self._origin = None
        try:
            made_from = origin(sources)
            kept = self._report.taken(made_from, lambda: _built(sources, drawer, folder))
            self._added = kept or self._report.noting(_built(sources, drawer, folder))
        except EpochcostError as error:
            raise PluginError(str(error)) from error
        if not kept and self._added.lasting:
            self._origin = made_from
        for problem in self._added.problems:
            log.warning(problem)

    def write(self, config: MkDocsConfig, files: Files, folder: Path) -> int:
        """Write what the report adds to the files, and the hand-written pages; how many files."""
        return write_site(self._added, partial(_address, files), Path(config.docs_dir), folder)

    def _files(self, config: MkDocsConfig) -> list[File]:
        contents = {**self._added.pages, **self._added.files}
        results = self._added.results.items()
        return [
            *(LateFile.of(config, uri, content) for uri, content in contents.items()),
            *(File.generated(config, uri, abs_src_path=str(path)) for uri, path in results),
        ]

    def _sources(self, config: MkDocsConfig) -> Sources:
        project = self._path(config, self.config.root)
        return Sources(
            project=project,
            results=tuple(self._path(config, folder) for folder in self.config.results),
            docs=Path(config.docs_dir),
            templates=self._templates(config),
            published=self.config.published or earlier_revision(project),
            cache=self._path(config, self.config.cache),
        )

    def _kept_in(self, config: MkDocsConfig) -> Path:
        return self._path(config, self.config.cache) / "pages"

    def _templates(self, config: MkDocsConfig) -> Path:
        if self.config.templates is not None:
            return self._path(config, self.config.templates)
        own = self._path(config, "site_templates")
        return own if own.is_dir() else PACKAGED

    def _path(self, config: MkDocsConfig, path: str) -> Path:
        return Path(config.config_file_path).parent / PurePosixPath(path)


def _built(sources: Sources, drawer: Drawer, kept: Path) -> Additions:
    from epochcost.report.build import additions  # noqa: PLC0415  a kept report needs none of it

    return additions(sources, drawer, kept)


def _address(files: Files, page: str, uri: str) -> str:
    """The address of a file as a page links to it; one that is not there is a warning."""
    here, there = (files.get_file_from_path(one) for one in (page, uri))
    if here is None or there is None:
        log.warning(f"{page}: a link leads to {uri}: no such file")
        return uri
    return there.url_relative_to(here)


def _watch(server: LiveReloadServer, path: Path) -> None:
    if path.exists():
        server.watch(str(path))


def write_pages(config_file: Path, folder: Path) -> int:
    """Write the whole site as Markdown with its files, as an mkdocs.yml configures it.

    The way out to another generator: charts stand in the pages, static. Returns the number of
    files. Raises InputError where the configuration, the specs or the folder are wrong.
    """
    try:
        config = load_config(str(config_file))
        plugin = config.plugins.get(NAME)
        if not isinstance(plugin, EpochcostPlugin):
            raise InputError(f"{config_file}: demanded the plugin {NAME}; got none")
        files = config.plugins.on_files(get_files(config), config=config)
        return plugin.write(config, files, folder)
    except MkDocsException as error:
        raise InputError(str(error)) from error
