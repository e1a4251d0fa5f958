"""Refusals of `epochcost build` and `serve`."""

from __future__ import annotations

import socket
from pathlib import Path

import pytest

from called_program import ended_program

# The import system reports the package as missing.
_WITHOUT_ALTAIR = """
import importlib.util
find = importlib.util.find_spec
importlib.util.find_spec = lambda name, *rest: None if name == "altair" else find(name, *rest)
"""


@pytest.mark.parametrize("command", ["build", "serve"])
def test_a_missing_package_names_itself_and_the_command(tmp_path: Path, command: str) -> None:
    """The exit code is 3; the message names the package and the command that installs it."""
    process = ended_program(tmp_path, command, before=_WITHOUT_ALTAIR)
    assert process.returncode == 3
    assert "missing: altair" in process.stderr
    assert "-m pip install" in process.stderr
    assert "[site]" in process.stderr


@pytest.mark.parametrize("command", ["build", "serve"])
def test_without_a_configuration_the_command_says_where_to_run(
    tmp_path: Path, command: str
) -> None:
    """The exit code is 1, and the message names mkdocs.yml."""
    (tmp_path / "specs").mkdir()
    process = ended_program(tmp_path, command)
    assert process.returncode == 1
    assert "mkdocs.yml" in process.stderr


def test_an_address_in_use_is_named(tmp_path: Path) -> None:
    """The exit code is 3, and the message names the address and suggests another."""
    (tmp_path / "mkdocs.yml").write_text("site_name: x\n", encoding="utf-8")
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs/index.md").write_text("# x\n", encoding="utf-8")
    with socket.create_server(("127.0.0.1", 0)) as other:
        address = f"127.0.0.1:{other.getsockname()[1]}"
        process = ended_program(tmp_path, "serve", "--dev-addr", address)
    assert process.returncode == 3, process.stderr
    assert f"--dev-addr {address}: expected a free address" in process.stderr
    assert process.stderr.endswith("Address already in use: name another, such as 127.0.0.1:8001\n")


def test_a_folder_with_other_files_is_never_emptied(tmp_path: Path) -> None:
    """MkDocs empties its output folder, so a folder with other files is refused."""
    (tmp_path / "mkdocs.yml").write_text("site_name: x\n", encoding="utf-8")
    user_file = tmp_path / "work/thesis.txt"
    user_file.parent.mkdir()
    user_file.write_text("years", encoding="utf-8")
    (tmp_path / "work/sitemap.xml").touch()  # another program's site
    for folder in ("work", ".", str(user_file)):
        process = ended_program(tmp_path, "build", "--site-dir", folder)
        assert process.returncode == 1, folder
        assert "--site-dir" in process.stderr
    assert user_file.read_text(encoding="utf-8") == "years"


def test_strict_and_pages_do_not_go_together(tmp_path: Path) -> None:
    """Single pages are not checked, so --strict is refused."""
    (tmp_path / "mkdocs.yml").write_text("site_name: x\n", encoding="utf-8")
    process = ended_program(tmp_path, "build", "--strict", "--pages-to", "pages")
    assert process.returncode == 2
    assert "--strict" in process.stderr


def test_pages_need_the_plugin_in_the_configuration(tmp_path: Path) -> None:
    """A configuration without the plugin is refused."""
    (tmp_path / "docs").mkdir()
    (tmp_path / "mkdocs.yml").write_text("site_name: x\nplugins: []\n", encoding="utf-8")
    process = ended_program(tmp_path, "build", "--pages-to", "pages")
    assert process.returncode == 1
    assert "plugin" in process.stderr
    assert "Traceback" not in process.stderr
