"""The small project for Chromium's tests, built once in each process.

Other projects whose sites these tests build share its cache.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser

from browsed_site import Site, Windows, chromium, served
from report_project import results_of_rented_machines, write_project
from shared_builds import SharedBuilds


@pytest.fixture(scope="session", name="shared")
def shared_fixture(
    tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest
) -> SharedBuilds:
    """The shared cache of site builds, in a folder of all processes."""
    base = tmp_path_factory.getbasetemp()
    alone = not hasattr(request.config, "workerinput")
    return SharedBuilds((base if alone else base.parent) / "shared-builds")


@pytest.fixture(scope="session", name="project")
def project_fixture(tmp_path_factory: pytest.TempPathFactory, shared: SharedBuilds) -> Path:
    """The project, not built yet."""
    folder = tmp_path_factory.mktemp("browser")
    return shared.into(write_project(folder, results_of_rented_machines(), whole_pages=True))


@pytest.fixture(scope="session", name="folder")
def folder_fixture(project: Path, address: str, shared: SharedBuilds) -> Path:
    """The built site of the project; instant navigation needs its address."""
    published = {"EPOCHCOST_SITE_URL": address, "NO_MKDOCS_2_WARNING": "1"}
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet"]
    subprocess.run(command, cwd=project, env={**os.environ, **published}, check=True)
    shared.add(project)
    return project / "site"


@pytest.fixture(scope="module", name="browser")
def browser_fixture() -> Iterator[Browser]:
    """One Chromium for all tests of a file; Playwright allows one at a time in a process."""
    with chromium() as browser:
        yield browser


@pytest.fixture(scope="session", name="address")
def address_fixture(project: Path) -> Iterator[str]:
    """The address of a local server of the site."""
    with served(project / "site") as address:
        yield address


@pytest.fixture(scope="module", name="windows")
def windows_fixture(folder: Path, address: str, browser: Browser) -> Windows:
    """The browser's windows on the built site."""
    assert (folder / "index.html").is_file()
    return Windows(browser, address)


@pytest.fixture(name="site")
def site_fixture(folder: Path, windows: Windows) -> Iterator[Site]:
    """The site; afterwards no page may have reported an error."""
    site = Site(folder, windows)
    yield site
    windows.tidy()
    assert site.complaints == []
