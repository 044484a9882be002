"""Batches of series and arrays as tokens: scaled, masked or with targets, and augmented.

A batch is a pure function of (seed, epoch, its members): what is drawn does not depend on batch, process or worker.
Which members go together is `training.batching`'s to say.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import torch
from jaxtyping import Bool
from torch import Tensor

from rotarymae.arrays.dataset import ArrayDataset
from rotarymae.batch import Batch
from rotarymae.counter_rng import Noise, counter_uniform, standard_normal
from rotarymae.errors import InputError
from rotarymae.masking import MaskBlocks, Masking, MaskRatio, split
from rotarymae.preprocess.base import Preprocessor
from rotarymae.preprocess.joined import drop_values, observations, split_joined
from rotarymae.preprocess.observations import ObservationPreprocessor, opens_token
from rotarymae.preprocess.patches import PatchPreprocessor
from rotarymae.preprocess.static import static_features
from rotarymae.series.dataset import SeriesDataset
from rotarymae.tokens import Tokens, compact, round_up, rounding_step

ArrayTransform = Callable[[Sequence[np.ndarray], np.ndarray], Sequence[np.ndarray]]


class DatasetExamples(ABC):
    """Make batches of tokens from a data set; a subclass says how."""

    def __init__(
        self,
        dataset: Any,
        preprocessor: Any,
        seed: int = 0,
        masking: Masking | None = None,
        targets: np.ndarray | None = None,
        drop: float = 0.0,
        noise: float = 0.0,
        early: bool = False,
    ) -> None:
        """Store the data set, its preprocessor, and what is done to each batch.

        Args:
            dataset: series or arrays; a batch's index is of its members.
            preprocessor: fitted on the data set, or one that has checked it (`Preprocessor.check`).
            seed: of masks and augmentation.
            masking: how tokens are hidden, for pre-training: a new draw each epoch, a fixed one for evaluation. None
                hides none.
            targets: labels (integers) or values, one row per member, for supervised training; None without.
            drop: augmentation; up to this share of a member's tokens is left out, drawn anew each epoch.
            noise: augmentation; standard deviation of normal noise added to standardised values.
            early: augmentation; half of the members end after a random number of their tokens, drawn anew each epoch.

        Raises:
            InputError: another number of targets than of members.
        """
        if targets is not None and len(targets) != len(dataset):
            raise InputError(f"{len(targets)} targets for {len(dataset)} {dataset.noun}; wanted one each.")
        self.dataset, self.preprocessor, self.lengths = dataset, preprocessor, preprocessor.lengths(dataset)
        self.seed, self.masking, self.drop, self.noise, self.early = seed, masking, drop, noise, early
        self.targets = None if targets is None else torch.as_tensor(targets)

    @abstractmethod
    def tokens(self, index: np.ndarray, epoch: int | None) -> Tokens:
        """Return the tokens of the members at `index`, before augmentation and masks; `epoch` is None in evaluation."""

    def names(self, index: Sequence[int] | np.ndarray) -> list[str]:
        """Return the ids of the members at `index`, as text."""
        return [str(name) for name in self.dataset.ids[np.asarray(index, np.int64)]]

    def batch(self, index: np.ndarray, epoch: int | None) -> Batch:
        """Return the batch of the members at `index`, with targets or masked tokens if there are any.

        Args:
            index: int [B].
            epoch: a new epoch draws new augmentation and masks; None means evaluation, with the same masks each time
                and no augmentation.
        """
        tokens, masked = self.tokens(index, epoch), None
        step = rounding_step(tokens.length)
        if epoch is not None:
            tokens = self._augmented(tokens, index, epoch)
        if self.masking is not None:
            tokens, masked = self._split_at_random(self.masking, tokens, index, epoch)
        targets = None if self.targets is None else self.targets[torch.from_numpy(index)]
        return Batch(index, round_up(tokens, step), None if masked is None else round_up(masked, step), targets)

    def _augmented(self, tokens: Tokens, index: np.ndarray, epoch: int) -> Tokens:
        """Return the tokens with the augmentations that are on: series cut early, tokens dropped, noise added.

        Args:
            tokens: of a batch.
            index: its examples; with `epoch` they decide the random numbers.
        """
        dropped, noisy, cut = (counter_uniform(self.seed, epoch, index, stream) for stream in (1, 2, 5))
        if self.early:
            tokens = cut_tokens(tokens, cut)
        if self.drop > 0:
            tokens = drop_tokens(tokens, self.drop, dropped)
        if self.noise > 0:
            features = self.preprocessor.features  # further inputs stay as they are
            normal = standard_normal(noisy(tokens.length * features)).view(*tokens.values.shape[:2], features)
            normal = torch.nn.functional.pad(normal, (0, tokens.features - features))
            tokens = replace(tokens, values=tokens.values + self.noise * normal, check_values=False)
        return tokens

    def split(self, tokens: Tokens, mask: Bool[Tensor, "B K"]) -> tuple[Tokens, Tokens]:
        """Split tokens into (visible, masked) by a mask over `units`, which is True where something is hidden."""
        return split(tokens, mask)

    def units(self, tokens: Tokens) -> Tokens:
        """Return the tokens that a mask hides one by one: K a row, where K is N except for joined times."""
        return tokens

    def _split_at_random(
        self, masking: Masking, tokens: Tokens, index: np.ndarray, epoch: int | None
    ) -> tuple[Tokens, Tokens]:
        """Draw a mask and split the tokens into (visible, masked).

        For epoch None, in evaluation, the mask is always the same. If nothing can be hidden, all tokens are visible,
        and the masked ones are padding.
        """
        # Evaluation draws from a stream of its own: the same masks in every epoch and for every model.
        hidden = counter_uniform(self.seed, -1 if epoch is None else epoch, index)
        # One phase an epoch; evaluation draws row by row, so that its masks do not depend on anything else.
        phase = None if epoch is None else float(counter_uniform(self.seed, epoch, [-1])(1))
        mask = masking(self.units(tokens), hidden, phase)
        # One process's part of a batch may be rows in which there is nothing to hide; its part of the loss is 0.
        return self.split(tokens, mask) if mask.any() else (tokens, _nothing(tokens))


def cut_tokens(tokens: Tokens, draw: Noise) -> Tokens:
    """Return the tokens with half of the rows, drawn at random, cut after a random number of tokens, at least one.

    Args:
        tokens: in order of time.
        draw: gives uniform random numbers [B, n].
    """
    uniform, real = draw(2), tokens.real
    kept = torch.where(uniform[:, :1] < 0.5, 1.0, uniform[:, 1:]) * real.sum(1, keepdim=True)
    return compact(tokens, real & (torch.arange(tokens.length) < kept.ceil().clamp(min=1)))


def drop_tokens(tokens: Tokens, most: float, draw: Noise) -> Tokens:
    """Drop a random share of each row's tokens, drawn between 0 and `most`; one token always stays.

    Args:
        draw: gives uniform random numbers [B, n].
    """
    uniform = draw(tokens.length + 1)
    share, uniform = most * uniform[:, :1], uniform[:, 1:]
    keep = tokens.real & (uniform >= share)
    # A row that would become empty keeps the token with the largest draw.
    largest = uniform.masked_fill(~tokens.real, -1.0).argmax(1, keepdim=True)
    return compact(tokens, keep.scatter(1, largest, True))


def _nothing(like: Tokens) -> Tokens:
    """Return as many rows as `like` has, each of which is one token of padding."""
    values, positions = like.values[:, :1] * 0, like.positions[:, :1] * 0
    return Tokens(values, positions, torch.ones(values.shape[:2], dtype=torch.bool), check_values=False)


class SeriesExamples(DatasetExamples):
    """Batches of a SeriesDataset; arguments as `DatasetExamples`."""

    dataset: SeriesDataset
    preprocessor: ObservationPreprocessor

    def __init__(self, *given: Any, **options: Any) -> None:
        """Store the arguments of `DatasetExamples`, and compute static features and origins of all series.

        Raises InputError as `DatasetExamples`, and for a static column of the model that the data set does not have.
        """
        super().__init__(*given, **options)
        columns = self.preprocessor.static
        self.static = torch.from_numpy(static_features(columns, self.dataset)) if columns else None
        self.origins = self.preprocessor.positions.origins(self.dataset)

    def tokens(self, index: np.ndarray, epoch: int | None) -> Tokens:
        """Return the tokens of the series at `index`; they are the same in every epoch.

        Raises InputError for NaN or infinity.
        """
        return checked(self.preprocessor.tokens(self.preprocessor.rows(self.dataset, index, self.origins)))

    def _augmented(self, tokens: Tokens, index: np.ndarray, epoch: int) -> Tokens:
        """Return the tokens with the augmentations that are on; of joined times single values are dropped, too."""
        if self.preprocessor.join_times and self.drop > 0:
            tokens = drop_values(tokens, self.drop, counter_uniform(self.seed, epoch, index, stream=4))
        return super()._augmented(tokens, index, epoch)

    def units(self, tokens: Tokens) -> Tokens:
        """Return the tokens that a mask hides one by one: of joined times, a token for each value."""
        if not self.preprocessor.join_times:
            return tokens
        return observations(tokens, len(self.preprocessor.value_columns))

    def split(self, tokens: Tokens, mask: Bool[Tensor, "B K"]) -> tuple[Tokens, Tokens]:
        """Split tokens into (visible, masked) by a mask over `units`, which is True where something is hidden."""
        return split_joined(tokens, mask) if self.preprocessor.join_times else super().split(tokens, mask)

    def batch(self, index: np.ndarray, epoch: int | None) -> Batch:
        """Return the batch of the series at `index`, as `DatasetExamples.batch`, ready for the model.

        It has static features if the model reads some, log standard errors of the hidden values if the data have
        errors, and the sides of those that are limits.
        """
        batch = super().batch(index, epoch)
        # After hiding: what is hidden must not be carried forward.
        batch = replace(batch, inputs=self.preprocessor.complete(batch.inputs))
        features = self.preprocessor.features
        if batch.masked is not None and self.preprocessor.limits:
            batch = replace(batch, sides=self.preprocessor.sides(batch.masked))
        if batch.masked is not None and self.preprocessor.errors:
            batch = replace(batch, log_errors=batch.masked.values[..., features : 2 * features])
        return batch if self.static is None else replace(batch, static=self.static[torch.from_numpy(index)])

    def token_of(self, i: int) -> np.ndarray:
        """Return, for each observation of series `i`, the number of its token [n], from 0 within the series."""
        if not self.preprocessor.join_times:
            return np.arange(self.dataset.lengths[i])
        one = self.dataset.select([i])
        return np.cumsum(opens_token(one, np.array([0]))) - 1

    def without_each(self, i: int) -> Tokens:
        """Return n rows of tokens for series `i`, which has n observations: the k-th lacks observation k alone."""
        tokens, token = self.tokens(np.array([i]), None), torch.from_numpy(self.token_of(i))
        n = len(token)
        left_out = torch.zeros(n, tokens.length, tokens.features, dtype=torch.bool)
        if self.preprocessor.join_times:
            rows = slice(self.dataset.offsets[i], self.dataset.offsets[i + 1])
            width = len(self.preprocessor.value_columns)  # one observation's features, side by side
            assert self.dataset.channels is not None, "joined times are those of channels"
            first = torch.from_numpy(np.asarray(self.dataset.channels[rows], np.int64)) * width
            for feature in range(width):
                left_out[torch.arange(n), token, first + feature] = True
        else:
            left_out[torch.arange(n), token] = True
            left_out = left_out[..., 0]
        visible, _ = self.split(tokens.rows(torch.zeros(n, dtype=torch.int64)), left_out.flatten(1))
        return self.preprocessor.complete(visible)


class ArrayExamples(DatasetExamples):
    """Batches of an ArrayDataset."""

    dataset: ArrayDataset
    preprocessor: PatchPreprocessor

    def __init__(self, *given: Any, transform: ArrayTransform | None = None, **options: Any) -> None:
        """Store the arguments of `DatasetExamples`, and a transform.

        Args:
            transform: augmentation of the arrays themselves, before they are scaled: given the arrays [*sizes, C] of a
                batch and one whole number [B] per array, drawn anew each epoch, to seed its random numbers with, it
                returns the new arrays. Evaluation leaves it out. None means none.
        """
        super().__init__(*given, **options)
        self.transform = transform

    def tokens(self, index: np.ndarray, epoch: int | None) -> Tokens:
        """Return the tokens of the arrays at `index`.

        Args:
            epoch: seeds the random choices of the transform, which is applied first; None leaves the arrays as they
                are.
        """
        arrays: Sequence[np.ndarray] = [self.dataset.arrays[i] for i in index]
        if self.transform is not None and epoch is not None:
            seeds = (counter_uniform(self.seed, epoch, index, stream=4)(1)[:, 0] * 2**24).long().numpy()
            arrays = self.transform(arrays, seeds)
        return self.preprocessor(arrays)


def assemble(
    dataset: SeriesDataset,
    preprocessor: ObservationPreprocessor,
    index: np.ndarray,
    origins: np.ndarray | None = None,
) -> Tokens:
    """Return the tokens of the series at `index`, padded to the longest, as a model takes them.

    Args:
        origins: [S] time from which each series of the data set counts; None computes them.

    Raises:
        InputError: NaN or infinity.
    """
    origins = preprocessor.positions.origins(dataset) if origins is None else origins
    return checked(preprocessor(preprocessor.rows(dataset, index, origins)))


def checked(tokens: Tokens) -> Tokens:
    """Return tokens without padding that no row needs, after checking them. Raises InputError for NaN or infinity.

    Tokens whose padding is None are returned as they are, unchecked.
    """
    if tokens.padding is None:
        return tokens
    length = int(tokens.real.sum(1).max())
    observed = None if tokens.observed is None else tokens.observed[:, :length]
    return Tokens(tokens.values[:, :length], tokens.positions[:, :length], tokens.padding[:, :length], observed)


def maskable(dataset: Any, preprocessor: Preprocessor, masking: Masking) -> np.ndarray:
    """Return a mask [S], True for series or arrays long enough that masking hides something.

    Hiding single tokens needs two of them; hiding whole times, channels or patches needs two different ones.
    """
    return np.concatenate(list(_maskable(dataset, preprocessor, masking)))


def require_maskable(dataset: Any, preprocessor: Preprocessor, masking: Masking) -> None:
    """Raise InputError if masking would hide nothing in any of the series or arrays."""
    if not any(part.any() for part in _maskable(dataset, preprocessor, masking)):
        raise InputError(
            f"masking {masking.kind!r} would hide nothing in any of the {len(dataset):,} {dataset.noun}, so that there "
            "would be nothing to learn; hide single observations instead.",
            code="nothing-to-hide",
            settings=[("masking", "ratio")],
        )


def _maskable(dataset: Any, preprocessor: Any, masking: Masking) -> Iterator[np.ndarray]:
    """Yield the mask of `maskable` in blocks of consecutive series, one array [block] after another."""
    if isinstance(masking, MaskRatio | MaskBlocks):
        yield dataset.lengths >= 2
        return
    examples = preprocessor.examples(dataset)
    for start in range(0, len(dataset), 256):
        index = np.arange(start, min(start + 256, len(dataset)))
        units = examples.units(examples.tokens(index, None))
        yield masking(units, counter_uniform(0, -1, index)).any(1).cpu().numpy()
