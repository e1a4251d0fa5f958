"""Models of the catalogue on files in the formats of their data sets, with made-up contents.

No accuracy is claimed of the true files: whoever has them gives one command.
"""

from __future__ import annotations

import gzip
import io
import tarfile
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from epochcost.errors import CapabilityError, InputError
from epochcost.execute.training import TrainingRequest, prepare, run_repeat
from epochcost.plan.trial import SessionSettings
from epochcost.results.trainings import Repeat
from epochcost.specs.loader import load_catalogue
from epochcost.specs.reference_data import DataFile, Dataset, Generated
from epochcost.train.generated import draw_images
from epochcost.train.loop import Recipe

ROOT = Path(__file__).parents[2]
CATALOGUE = load_catalogue(ROOT)


def images(side: int, channels: int, count: int) -> tuple[NDArray[Any], NDArray[Any]]:
    """Textured shapes whose labels are all right."""
    return draw_images(Generated(generator="textured-shapes", side=side, channels=channels), count)


def unhashed(dataset: Dataset) -> Dataset:
    """The data set with files of any length and content."""
    assert dataset.data is not None
    free = {"size_bytes": None, "sha256": None}
    files = tuple(file.model_copy(update=free) for file in dataset.data.files)
    return dataset.model_copy(update={"data": dataset.data.model_copy(update={"files": files})})


def write_mnist(folder: Path, training: int, held_out: int) -> Path:
    """MNIST's four files, and the folder that they lie in."""
    pictures, labels = images(28, 1, training + held_out)
    place = folder / "mnist"
    place.mkdir(parents=True)
    for name, values in (
        ("train-images-idx3-ubyte.gz", pictures[:training, 0]),
        ("train-labels-idx1-ubyte.gz", labels[:training]),
        ("t10k-images-idx3-ubyte.gz", pictures[training:, 0]),
        ("t10k-labels-idx1-ubyte.gz", labels[training:]),
    ):
        sizes = b"".join(size.to_bytes(4) for size in values.shape)
        content = bytes([0, 0, 8, values.ndim]) + sizes + values.astype(np.uint8).tobytes()
        (place / name).write_bytes(gzip.compress(content, 1))
    return folder


def write_cifar(folder: Path) -> Path:
    """CIFAR-10's binary archive, of 64 images a batch."""
    pictures, labels = images(32, 3, 6 * 64)
    place = folder / "cifar-10"
    place.mkdir(parents=True)
    with tarfile.open(place / "cifar-10-binary.tar.gz", "w:gz") as archive:
        for number in range(6):
            rows = slice(64 * number, 64 * number + 64)
            pairs = zip(labels[rows], pictures[rows], strict=True)
            content = b"".join(bytes([label]) + picture.tobytes() for label, picture in pairs)
            name = f"data_batch_{number + 1}" if number < 5 else "test_batch"
            member = tarfile.TarInfo(f"cifar-10-batches-bin/{name}.bin")
            member.size = len(content)
            archive.addfile(member, io.BytesIO(content))
    return folder


def trained(model_id: str, dataset: Dataset, data: Path, epochs: int, batch: int) -> Repeat:
    """Some epochs of the model's own recipe."""
    model = CATALOGUE.model(model_id)
    training = model.training
    assert training is not None
    recipe = Recipe(training.schedule, training.optimizer.learning_rate, epochs, 0)
    settings = SessionSettings(threads=1)
    request = TrainingRequest(model, training, dataset, batch, "cpu", settings)
    prepared = prepare(request, recipe, CATALOGUE, data)
    repeat = run_repeat(prepared, 0, data / "to", lambda *_: None, lambda: False)
    assert repeat is not None
    return repeat


@pytest.mark.parametrize(("model", "epochs"), [("mnist-mlp", 8), ("mnist-cnn", 1)])
def test_models_of_mnist_train_on_files_in_its_format(
    tmp_path: Path, model: str, epochs: int
) -> None:
    """From four gzipped IDX files; the loss on them falls."""
    data = write_mnist(tmp_path, 640, 100)
    repeat = trained(model, unhashed(CATALOGUE.datasets["mnist"]), data, epochs, 64)
    assert repeat.steps == epochs * 10
    before, after = repeat.curve[0], repeat.curve[-1]
    assert after.training_loss is not None
    assert min(after.training_loss, after.loss) < before.loss


def test_a_model_of_cifar_trains_on_its_archive(tmp_path: Path) -> None:
    """From one archive, which has both parts."""
    data = write_cifar(tmp_path)
    repeat = trained("cifar10-resnet8", unhashed(CATALOGUE.datasets["cifar-10"]), data, 1, 64)
    assert repeat.steps == 5
    assert len(repeat.curve) == 2


def test_files_that_are_not_the_published_ones_are_refused(tmp_path: Path) -> None:
    """By length and by hash, before they are read; absent ones with what to do."""
    mnist = CATALOGUE.datasets["mnist"]
    with pytest.raises(CapabilityError, match="found none: `epochcost data fetch mnist`"):
        trained("mnist-mlp", mnist, tmp_path, 1, 64)
    data = write_mnist(tmp_path, 64, 10)
    with pytest.raises(InputError, match="expected 9,912,422 bytes, got"):
        trained("mnist-mlp", mnist, data, 1, 64)


def test_labels_beyond_the_classes_are_told_before_a_step(tmp_path: Path) -> None:
    """With the example that has one."""
    dataset = CATALOGUE.datasets["digits"]
    assert dataset.data is not None
    rows = np.zeros((400, 65))
    rows[7, -1] = 10
    place = tmp_path / "digits"
    place.mkdir()
    np.savetxt(place / "digits.csv", rows, delimiter=",", fmt="%g")
    file = DataFile(name="digits.csv", part="both")
    data = dataset.data.model_copy(update={"files": (file,), "largest_value": Decimal(16)})
    with pytest.raises(InputError, match="labels: expected whole numbers from 0 to 9, got 10"):
        trained("digits-mlp", dataset.model_copy(update={"data": data}), tmp_path, 1, 32)
