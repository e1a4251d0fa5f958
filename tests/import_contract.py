"""A contract for import-linter: the packages that some modules may import, and no others."""

from __future__ import annotations

import sys

from grimp import ImportGraph
from importlinter import Contract, ContractCheck, fields, output


class OnlyContract(Contract):
    """Modules may import the standard library, the named packages, and nothing else from outside.

    Options: ``source_modules``, whose descendants are checked too, and ``allowed_packages``.
    """

    type_name = "only"

    source_modules = fields.SetField(subfield=fields.ModuleField())
    allowed_packages = fields.SetField(subfield=fields.StringField())

    def check(self, graph: ImportGraph, verbose: bool) -> ContractCheck:  # noqa: ARG002
        """Compare the direct imports of the graph with the allowed packages."""
        allowed = self.allowed_packages | sys.stdlib_module_names  # type: ignore[operator]
        sources = {
            name
            for module in self.source_modules  # type: ignore[attr-defined]
            for name in (module.name, *graph.find_descendants(module.name))
        }
        found = sorted(
            f"{source} -> {imported}"
            for source in sources
            for imported in graph.find_modules_directly_imported_by(source)
            if graph.is_module_squashed(imported) and imported.partition(".")[0] not in allowed
        )
        return ContractCheck(kept=not found, metadata={"found": found})

    def render_broken_contract(self, check: ContractCheck) -> None:
        """Print every import that is not allowed."""
        for line in check.metadata["found"]:
            output.print_error(line)
