"""Facts about the ONNX files of a project's models that decide which trials a machine can run."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, partial

import onnx

from epochcost.errors import EpochcostError, ModelError
from epochcost.execute.job_files import why_unmeasured
from epochcost.execute.sizes import cached_size
from epochcost.execute.sizing import Footprint, decoder_bytes
from epochcost.plan.binding import Misfit, file_misfits
from epochcost.plan.digests import graph_sha256
from epochcost.specs.catalogue import Catalogue
from epochcost.specs.document import read
from epochcost.specs.loader import FOLDER
from epochcost.specs.study import Mode, Precision, Provider
from onnxstep.graphs.loading import external_files, load_model


class GraphFacts:
    """Facts about models' ONNX files, each computed once, even if a file changes afterwards."""

    def __init__(self, catalogue: Catalogue) -> None:
        self.catalogue = catalogue
        self.sha256 = cache(partial(graph_sha256, catalogue))
        self.fault = cache(self._fault)
        self.why_unmeasured = cache(self._why_unmeasured)
        self.decoder_bytes = cache(self._decoder_bytes)
        self.footprints = cache(self._footprints)

    def _fault(self, name: str) -> str | None:
        """Why a model's ONNX file is missing or contradicts its spec; None if it can be used."""
        model = self.catalogue.models[name]
        path = self.catalogue.graph_path(model)
        try:
            # Raises ModelError if a file of external data is missing.
            external_files(path)
            misfits = file_misfits(path, model) if model.decoder else iter(())
            return next((self._misfit_message(name, misfit) for misfit in misfits), None)
        except ModelError as error:
            return str(error)

    def _misfit_message(self, name: str, misfit: Misfit) -> str:
        path = self.catalogue.files.get(f"models/{name}")
        if path is None:
            return f"model {name}: {misfit}"
        return f"{read('models', path, self.catalogue.root / FOLDER).place(misfit.key)}: {misfit}"

    def _why_unmeasured(self, name: str, precision: Precision) -> str | None:
        """Why a decoder's ONNX file cannot be measured in a precision; None if it can."""
        path = self.catalogue.graph_path(self.catalogue.models[name])
        return why_unmeasured(onnx.load_model(path, load_external_data=False), precision)

    def _decoder_bytes(self, name: str) -> Callable[[int, int], int] | None:
        """A function from batch size and sequence length to bytes; None for an unreadable file."""
        model = self.catalogue.models[name]
        try:
            return decoder_bytes(model, load_model(self.catalogue.graph_path(model)))
        except ModelError:
            return None

    def _footprints(
        self, name: str, mode: Mode, provider: Provider, batch_sizes: frozenset[int]
    ) -> dict[int, Footprint]:
        """A model's memory by batch size; empty if it cannot be computed for one of the sizes."""
        try:
            model = self.catalogue.model(name)
            size = cached_size(self.catalogue, model, {mode: batch_sizes}, provider)[mode]
        except EpochcostError:
            return {}
        return {} if isinstance(size, str) else size
