"""The contract of preprocessors: a torch module, fitted on a training set, that turns data into tokens."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np
import torch
from torch import nn

from rotarymae.errors import InputError
from rotarymae.series.windows import Windows
from rotarymae.tokens import Tokens


class Preprocessor(nn.Module):
    """Base class of what turns data, in their own units, into a model's tokens, and answers back into these units.

    Subclasses are dataclasses, whose fields are settings that JSON can hold. Fitted statistics are buffers, which are
    saved with a model's weights. Scaling is done in float64, on the CPU: some devices have none.

    Attributes:
        kind: the name of the class in config.json; that of a data set it reads.
        noun: what messages call its data, such as "series".
        parts: what messages call the parts of a series or array, such as observations.
        axes, features, input_features: numbers A of position axes, V of values and E of further inputs of its tokens.
        static: the fitted columns with one value per series; empty where the data have none.
        static_features: number of features of each series that a head reads in addition to its tokens.
        errors: names of the columns of standard errors; empty where there are none.
        limits: whether some of the training values were limits, known only to lie below or above a number ("<5").
        window, overlap: longer series are cut into pieces of `window` observations that share `overlap` of them at
            least; None cuts nothing.

    A subclass has these methods: `check(dataset)` refuses data that the model was not made for, and warns of what looks
    unlike the training set; `tokens_of(dataset, index)` makes tokens of some members, and `forward(rows)` of a batch
    in its own units; `check_statistics()` refuses statistics that no training set has; and `describe()` says what is
    done to the data, in words and numbers, for reports and model cards.
    """

    kind: ClassVar[str]
    parts: ClassVar[str]
    static: ClassVar[tuple[Any, ...]] = ()
    errors: ClassVar[tuple[str, ...]] = ()
    limits: ClassVar[bool] = False
    window: ClassVar[int | None] = None
    overlap: ClassVar[int] = 0
    input_features: ClassVar[int] = 0
    static_features: ClassVar[int] = 0

    def __new__(cls, *args: Any, **settings: Any) -> Any:
        """Create the object as a torch module before the dataclass sets its fields, so that these may hold tensors."""
        self = super().__new__(cls)
        nn.Module.__init__(self)
        return self

    def lengths(self, dataset: Any) -> np.ndarray:
        """Return the number of tokens of each of the S members of a data set (series or arrays), int [S].

        This base method counts one token for each observation or patch.
        """
        return np.asarray(dataset.lengths)

    def windows(self, dataset: Any) -> Windows:
        """Cut series longer than `window` into overlapping pieces of `window` observations; return them as `Windows`.

        Shorter series, and arrays, are one piece each; so is every series if `window` is None. Raises InputError for
        series if the model was trained on arrays, or the other way round.
        """
        if dataset.kind != self.kind:
            raise InputError(f"{dataset.noun} were given; the model was trained on {self.noun}. Give {self.noun}.")
        return Windows.cut(dataset, self.window, self.overlap)

    def maskable_tokens(self, tokens: Tokens) -> Tokens:
        """Return the tokens [B, K] that pre-training hides one by one, from the tokens [B, N] that the model reads.

        This base method returns `tokens` unchanged. Where a token holds several values that are hidden separately, a
        subclass returns one token per value.
        """
        return tokens

    def complete(self, tokens: Tokens) -> Tokens:
        """Add to the visible tokens what must be computed after hiding, such as the latest value of each channel.

        If it were computed before, it would give hidden values away. This base method adds nothing, and returns
        `tokens`.

        Args:
            tokens: tokens from `tokens_of` that are left after some were hidden.
        """
        return tokens

    def with_static(self, dataset: Any, names: Sequence[str]) -> Any:
        """Return a preprocessor that also reads the columns `names` (one value per series), fitted on the data set.

        This base method returns `self`, and reads neither argument: arrays have no such columns.
        """
        return self

    def replace(self, **changes: Any) -> Any:
        """Return a copy with other settings, `changes` {setting: value}, and a copy of the same statistics."""
        fields = {field.name: getattr(self, field.name) for field in dataclasses.fields(self)}  # type: ignore[arg-type]
        copy = type(self)(**(fields | changes))
        copy.load_state_dict(self.state_dict())
        return copy


def require_positive(**statistics: torch.Tensor) -> None:
    """Raise InputError unless every number in all tensors is positive and finite; keywords name them in the message."""
    for name, tensor in statistics.items():
        if not bool(((tensor > 0) & torch.isfinite(tensor)).all()):
            raise InputError(f"the preprocessor's {name} are not all positive and finite: the saved model is damaged.")
