"""A file of the site whose content is made when MkDocs copies it, and forgotten then."""

from __future__ import annotations

from collections.abc import Callable

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File


class LateFile(File):
    """As `File.generated` makes it, with a function in place of the content."""

    _made: Callable[[], bytes]

    @classmethod
    def of(cls, config: MkDocsConfig, uri: str, made: Callable[[], bytes]) -> LateFile:
        """The file at an address of the site."""
        file = cls.generated(config, uri, content="")
        assert isinstance(file, cls)
        file._made = made
        return file

    @property
    def _content(self) -> bytes:
        return self._made()

    @_content.setter
    def _content(self, content: str | bytes | None) -> None:
        """What `generated` sets stands for nothing."""
