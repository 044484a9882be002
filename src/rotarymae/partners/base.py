"""The base of every partner of the network (boosting, convolutions, Cox's regression), and checks of saved files."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, ClassVar, Protocol, Self

import numpy as np
from numpy.typing import NDArray
from safetensors import SafetensorError
from safetensors.numpy import load_file, save_file

from rotarymae.datasets import AnyDataset
from rotarymae.errors import InputError, ModelDirectoryError
from rotarymae.preprocess import StaticColumn
from rotarymae.system import from_fields

Floats = NDArray[np.float64]
ANEW = "Fit or fetch the model anew."


class Partner(Protocol):
    """A partner: a method that predicts one target per series without the network, and is combined with it.

    Attributes:
        name: its name in options, and the name of its file without the ending.
        title: its name in tables and sentences.
        suffix: the ending of its file, such as ".txt".
    """

    name: ClassVar[str]
    title: ClassVar[str]
    suffix: ClassVar[str]

    @classmethod
    def suits(cls, task: str, dataset: AnyDataset) -> bool:
        """Return whether it makes sense to fit this method to the training data, by the kind and the amount of data.

        Args:
            task: "classification", "regression" or "survival".
            dataset: the training data.
        """
        ...

    @classmethod
    def rows(cls, task: str, dataset: AnyDataset) -> int:
        """Return how many training rows the method wants to learn from: S series, or more if it adds altered copies.

        This base method returns S, as it makes no copies.

        Args:
            task: "classification", "regression" or "survival".
            dataset: the training data, S series or arrays.
        """
        return len(dataset)

    @classmethod
    def note_for_user(cls, dataset: AnyDataset, static: Sequence[str]) -> str:
        """Return what a user should know of how the method reads the data and these static columns; "" for nothing.

        This base method returns "".
        """
        return ""

    @classmethod
    def fit(
        cls,
        task: str,
        dataset: AnyDataset,
        truth: NDArray[Any],
        static: tuple[StaticColumn, ...],
        seed: int,
        rows: int | None = None,
    ) -> Self:
        """Fit the method to training data and return it.

        Args:
            task: "classification", "regression" or "survival".
            dataset: the S training series or arrays, for which `suits` is True.
            truth: their targets. Classification: class numbers int [S] from 0, every class present. Regression: numbers
                [S, outputs], NaN where one is missing. Survival: [S, K + 1] for K time intervals and the time after
                them, 1 where the series' event may have happened, else 0; in the interval of a censoring, the share of
                it that was still to come (see `survival.EventTimes.encode`).
            static: columns with one value per series, such as age, that the method may read besides the observations.
            seed: fixes all random choices; the same seed gives the same method.
            rows: number of series and altered copies together, at least S; None means what the method `rows` returns.
                Only methods that make copies read it.

        Raises:
            ValueError: the method cannot learn from these series, such as too few; an InputError is one.
        """
        ...

    def predict(self, dataset: AnyDataset) -> Floats:
        """Predict the target of each of the S series of `dataset`.

        Returns:
            Classification: probabilities [S, classes]. Survival: probabilities [S, K + 1] of the event in each of K
                time intervals, and in the last column after all of them. Regression: values [S, outputs], in the units
                of the training targets.

        Raises:
            InputError: other channels, value columns or static columns (one value per series) than in training.
        """
        ...

    def save(self, path: Path) -> dict[str, Any]:
        """Write fitted arrays or trees to the file `path`; return other settings, as JSON can hold them, for `load`.

        Raises:
            OSError: the file cannot be written, as on a full disk.
        """
        ...

    @classmethod
    def load(cls, path: Path, task: str, settings: dict[str, Any]) -> Self:
        """Read the fitted method from the file that `save` wrote, and check it.

        Args:
            path: the file.
            task: "classification", "regression" or "survival", as in the fit.
            settings: the dictionary that `save` returned, read back from JSON.

        Raises:
            ModelDirectoryError: a file or settings that `save` would not have written for this task.
        """
        ...


def save_arrays(path: Path, arrays: dict[str, NDArray[Any]]) -> None:
    """Write arrays {name: array} to a safetensors file.

    Raises:
        OSError: the file cannot be written, as on a full disk.
    """
    try:
        save_file({name: np.ascontiguousarray(array) for name, array in arrays.items()}, path)
    except SafetensorError as error:
        raise OSError(f"{path.name} could not be written: {error}") from None


def load_arrays(path: Path, layout: dict[str, tuple[type, tuple[int | str, ...]]]) -> dict[str, NDArray[Any]]:
    """Read arrays {name: array} from a safetensors file, and check their dtypes and shapes.

    Args:
        path: the file.
        layout: {name: (dtype, shape)} of all arrays that the file must hold. A size in a shape may be a text, such as
            "features": any size is then accepted, but all sizes with the same text must be equal.

    Raises:
        ModelDirectoryError: the file cannot be read; an array is absent, not in `layout`, empty, of another dtype or
            shape, or holds NaN or infinity.
    """
    try:
        arrays = load_file(path)
    # Of a dtype that numpy lacks, such as bfloat16, safetensors gives a TypeError or an AttributeError.
    except (SafetensorError, OSError, KeyError, ValueError, TypeError, AttributeError) as error:
        raise ModelDirectoryError(f"{path} cannot be read as safetensors: {error}. {ANEW}") from None
    if set(arrays) != set(layout):
        raise ModelDirectoryError(f"{path} holds the arrays {sorted(arrays)}; wanted {sorted(layout)}. {ANEW}")
    sizes: dict[str, int] = {}
    for name, (dtype, shape) in layout.items():
        array = arrays[name]
        expected = list(shape)
        if array.ndim == len(shape):
            expected = [sizes.setdefault(one, n) if isinstance(one, str) else one for one, n in zip(shape, array.shape)]
        if array.dtype != dtype or list(array.shape) != expected or not array.size:
            raise ModelDirectoryError(
                f"{path}: the array {name!r} is {array.dtype} {list(array.shape)}; wanted {np.dtype(dtype)} "
                f"{expected}, not empty. {ANEW}"
            )
        if not np.isfinite(array).all():
            raise ModelDirectoryError(
                f"{path}: the array {name!r} holds NaN or infinity; wanted finite numbers. {ANEW}"
            )
    return arrays


def read_settings(kind: type, settings: Any, path: Path) -> Any:
    """Create an instance of the dataclass `kind` from saved settings, a dictionary {field: value} read from JSON.

    Where a field is a tuple or a dataclass, a list or a dictionary is converted to it. `path`, the file to which the
    settings belong, is only named in the error.

    Raises:
        ModelDirectoryError: settings that are no dictionary; a field that is missing, unknown or of another type.
    """
    try:
        return from_fields(kind, settings, "the record of settings")
    except (InputError, TypeError) as error:
        raise ModelDirectoryError(f"{path}: {str(error).rstrip('.')}. {ANEW}") from None


def check(condition: bool, path: Path, field: str) -> None:
    """Raise ModelDirectoryError if `condition` is False; the message names the file `path` and the wrong `field`."""
    if not condition:
        raise ModelDirectoryError(f"{path}: the field {field!r} does not hold what this version writes. {ANEW}")
