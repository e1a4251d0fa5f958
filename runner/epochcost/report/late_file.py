"""A file of the site whose content is made when MkDocs copies it, and forgotten then."""

from __future__ import annotations

from collections.abc import Callable

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File


class LateFile(File):
    """As `File.generated` makes it, with a function in place of the content.

    One that is copied ``elsewhere`` is passed over where MkDocs would copy it.
    """

    _made: Callable[[], bytes]
    elsewhere = False

    @classmethod
    def of(cls, config: MkDocsConfig, uri: str, made: Callable[[], bytes]) -> LateFile:
        """The file at an address of the site."""
        file = cls.generated(config, uri, content="")
        assert isinstance(file, cls)
        file._made = made
        return file

    def copy_file(self, dirty: bool = False) -> None:
        """Copy it into the site, unless that happens elsewhere."""
        if not self.elsewhere:
            super().copy_file(dirty)

    def copy_here(self) -> None:
        """Copy it into the site, whoever should have done it."""
        super().copy_file()

    @property
    def _content(self) -> bytes:
        return self._made()

    @_content.setter
    def _content(self, content: str | bytes | None) -> None:
        """What `generated` sets stands for nothing."""
