"""Batches of series and arrays as tokens: scaled, masked or with targets, and augmented.

A batch is a pure function of (seed, epoch, its members): what is drawn does not depend on batch, process or worker.
Which members go together is said by `batch.plan_batches`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import torch
from jaxtyping import Bool, Int
from torch import Tensor

from rotarymae.batch import Batch
from rotarymae.counter_rng import Noise, counter_uniform, standard_normal
from rotarymae.errors import InputError
from rotarymae.masking import Masking, split
from rotarymae.preprocess.joined import drop_values, split_joined
from rotarymae.preprocess.static import static_features
from rotarymae.tokens import Tokens, compact, round_up, rounding_step

BLOCK = 256  # series or arrays whose tokens are made together to see what can be hidden in them
ArrayTransform = Callable[[Sequence[np.ndarray], np.ndarray], Sequence[np.ndarray]]


class DatasetExamples:
    """Batches of tokens from a data set of series or arrays: scaled, with some hidden or with targets, and augmented.

    Attributes:
        lengths: int [S], number of tokens of each member (series or array), by which batches are made.
        targets: [S, ...], a tensor with a row for each member; None without.
        static: float32 [S, F], features of each series that a head reads next to its tokens; None without.
    """

    def __init__(
        self,
        dataset: Any,
        preprocessor: Any,
        seed: int = 0,
        masking: Masking | None = None,
        targets: np.ndarray | None = None,
        drop: float = 0.0,
        noise: float = 0.0,
        early: np.ndarray | None = None,
        transform: ArrayTransform | None = None,
    ) -> None:
        """Store the data set, its preprocessor, and what is done to each batch.

        Args:
            dataset: S members, series or arrays.
            preprocessor: fitted on the data set, or one that has checked it (`Preprocessor.check`).
            seed: of masks and augmentation.
            masking: how tokens are hidden, for pre-training: a new draw each epoch, a fixed one for evaluation. None
                hides none.
            targets: labels (integers) or values, one row per member, for supervised training; None without.
            drop: augmentation; the largest share of a member's tokens that is left out. The share is drawn from 0 to
                this for each member and epoch. If tokens hold several values of one time (`Tokens.observed`), single
                values are left out before, by another share that is drawn in the same way.
            noise: augmentation; standard deviation of normal noise added to standardised values.
            early: augmentation; k numbers of tokens for each member, int [S, k]. In each epoch, about half of the
                members keep only their first tokens; how many is drawn from the member's k numbers. None cuts none.
            transform: augmentation of arrays before they are scaled, in each epoch: transform(arrays, seeds) gets the B
                arrays [*sizes, C] of a batch, and B whole numbers to seed its random choices with. It returns B arrays,
                none smaller than a patch. None for none.

        Raises:
            InputError: more or fewer targets than members; a static column of the preprocessor (one value per series)
                that the data set does not have, or that holds text where training had numbers.

        Warns:
            InputWarning: categories of a static column that training did not have.
        """
        if targets is not None and len(targets) != len(dataset):
            raise InputError(f"{len(targets)} targets for {len(dataset)} {dataset.noun}; give one target for each.")
        self.dataset, self.preprocessor, self.lengths = dataset, preprocessor, preprocessor.lengths(dataset)
        self.seed, self.masking, self.drop, self.noise, self.early = seed, masking, drop, noise, early
        self.targets = None if targets is None else torch.as_tensor(targets)
        columns, self.transform = preprocessor.static, transform
        self.static = torch.from_numpy(static_features(columns, dataset)) if columns else None

    def names(self, index: Sequence[int] | np.ndarray) -> list[str]:
        """Return the ids of the members (series or arrays) at `index`, int [B], as text."""
        return [str(name) for name in self.dataset.ids[np.asarray(index, np.int64)]]

    def tokens(self, index: np.ndarray, epoch: int | None) -> Tokens:
        """Return the tokens of the members at `index`, int [B], before tokens are hidden, dropped or made noisy.

        Members are series or arrays. The epoch seeds the random choices of `transform`, the augmentation of arrays.
        Epoch None means evaluation, without augmentation. Raises InputError for NaN or infinity.
        """
        if self.transform is None or epoch is None:
            return self.preprocessor.tokens_of(self.dataset, index)
        seeds = (counter_uniform(self.seed, epoch, index, stream=4)(1)[:, 0] * 2**24).long().numpy()
        return self.preprocessor(self.transform([self.dataset.arrays[i] for i in index], seeds))

    def batch(self, index: np.ndarray, epoch: int | None) -> Batch:
        """Return the batch of the members at `index`, int [B]: tokens to read, and hidden tokens or targets if any.

        Members are series or arrays. The batch also has the features of static columns (one value per series), the log
        standard errors of hidden values, and their `sides` (whether they are limits, such as "<5"); each is None if the
        preprocessor does not use it. A new epoch draws new augmentation and masks. Epoch None means evaluation: no
        augmentation, and the same masks each time.
        """
        tokens, masked, errors, sides = self.tokens(index, epoch), None, None, None
        step, at = rounding_step(tokens.length), torch.from_numpy(index)
        if epoch is not None:
            tokens = self._augmented(tokens, index, epoch)
        if self.masking is not None:
            tokens, masked = self._split_at_random(self.masking, tokens, index, epoch)
            masked, features = round_up(masked, step), self.preprocessor.features
            errors = masked.values[..., features : 2 * features] if self.preprocessor.errors else None
            sides = self.preprocessor.sides(masked) if self.preprocessor.limits else None
        # After hiding: what is hidden must not be carried forward.
        tokens = self.preprocessor.complete(round_up(tokens, step))
        targets, static = (None if part is None else part[at] for part in (self.targets, self.static))
        return Batch(index, tokens, masked, targets, static, errors, sides)

    def _augmented(self, tokens: Tokens, index: np.ndarray, epoch: int) -> Tokens:
        """Apply the augmentations that are on: cut series, drop values, drop tokens, add noise; return the tokens.

        `index`, int [B], is the number of each row's series or array in the data set. The random numbers of a row
        depend only on this number, the seed and the epoch.
        """

        def draw(stream: int) -> Noise:
            """Return a function from k to uniform numbers [B, k] in [0, 1), others for each `stream` (augmentation)."""
            return counter_uniform(self.seed, epoch, index, stream)

        if self.early is not None:
            tokens = cut_tokens(tokens, torch.from_numpy(self.early[index]), draw(5))
        if self.drop > 0 and tokens.observed is not None:  # tokens of times, of which single values are dropped, too
            tokens = drop_values(tokens, self.drop, draw(4))
        if self.drop > 0:
            tokens = drop_tokens(tokens, self.drop, draw(1))
        if self.noise > 0:
            features = self.preprocessor.features  # further inputs stay as they are
            normal = standard_normal(draw(2)(tokens.length * features)).view(*tokens.values.shape[:2], features)
            normal = torch.nn.functional.pad(normal, (0, tokens.features - features))
            tokens = replace(tokens, values=tokens.values + self.noise * normal, check_values=False)
        return tokens

    def _split_at_random(
        self, masking: Masking, tokens: Tokens, index: np.ndarray, epoch: int | None
    ) -> tuple[Tokens, Tokens]:
        """Hide tokens of the members at `index`, as `masking` draws them; return (visible tokens, hidden tokens).

        Members are series or arrays. If tokens hold several values of one time, single values are hidden. With epoch
        None, in evaluation, the same ones are hidden each time. If nothing can be hidden in any of these members, all
        tokens are visible, and the hidden ones are padding [B, 1].
        """
        # Evaluation draws from a stream of its own: the same masks in every epoch and for every model.
        hidden = counter_uniform(self.seed, -1 if epoch is None else epoch, index)
        # One phase an epoch; evaluation draws row by row, so that its masks do not depend on anything else.
        phase = None if epoch is None else float(counter_uniform(self.seed, epoch, [-1])(1))
        mask = masking(self.preprocessor.maskable_tokens(tokens), hidden, phase)
        if mask.any():
            return hide_units(tokens, mask)
        # One process's part of a batch may be rows in which there is nothing to hide; its part of the loss is 0.
        values, positions = tokens.values[:, :1] * 0, tokens.positions[:, :1] * 0
        return tokens, Tokens(values, positions, torch.ones(values.shape[:2], dtype=torch.bool), check_values=False)


def hide_units(tokens: Tokens, mask: Bool[Tensor, "B K"]) -> tuple[Tokens, Tokens]:
    """Split tokens [B, N] into (visible, hidden) by a mask [B, K], True where something is hidden.

    If each token holds the V values of one time (`observed` is not None), K is N · V, and single values are hidden.
    Otherwise K is N, and whole tokens are.
    """
    return split(tokens, mask) if tokens.observed is None else split_joined(tokens, mask)


def cut_tokens(tokens: Tokens, ends: Int[Tensor, "B k"], draw: Noise) -> Tokens:
    """Augment tokens: cut about half of the rows, chosen at random, to their first tokens; the others stay whole.

    The tokens of a row are in order of time, so that a row that is cut ends early. The number of tokens that it keeps
    is one of its k numbers in `ends`, drawn at random, but at least 1.

    Args:
        tokens: [B, N], with padding at the end of rows only.
        ends: k numbers of tokens for each row.
        draw: function from n to uniform random numbers [B, n] in [0, 1).

    Returns:
        The tokens that are left, padded at the end.
    """
    uniform, real = draw(2), tokens.real
    end = ends.gather(1, (uniform[:, 1:] * ends.shape[1]).long())
    kept = torch.where(uniform[:, :1] < 0.5, tokens.length, end.clamp(min=1))
    return compact(tokens, real & (torch.arange(tokens.length) < kept))


def drop_tokens(tokens: Tokens, most: float, draw: Noise) -> Tokens:
    """Augment tokens: drop a random share of each row's tokens; at least one token of each row stays.

    Args:
        most: the share is drawn for each row, uniformly from 0 to this.
        draw: function from k to uniform random numbers [B, k] in [0, 1).

    Returns:
        The tokens that are left, in their order and padded at the end.
    """
    uniform = draw(tokens.length + 1)
    share, uniform = most * uniform[:, :1], uniform[:, 1:]
    keep = tokens.real & (uniform >= share)
    # A row that would become empty keeps the token with the largest draw.
    largest = uniform.masked_fill(~tokens.real, -1.0).argmax(1, keepdim=True)
    return compact(tokens, keep.scatter(1, largest, True))


def maskable(dataset: Any, preprocessor: Any, masking: Masking) -> np.ndarray:
    """Return a mask [S], True for series or arrays of a data set in which `masking` can hide something.

    A masking of single tokens needs two observations or patches; one of whole times, channels or rows of patches needs
    two different times, channels or rows.
    """
    if masking.kind in ("ratio", "blocks"):
        return dataset.lengths >= 2
    parts = []
    for start in range(0, len(dataset), BLOCK):
        index = np.arange(start, min(start + BLOCK, len(dataset)))
        tokens = preprocessor.maskable_tokens(preprocessor.tokens_of(dataset, index))
        parts.append(masking(tokens, counter_uniform(0, -1, index)).any(1).cpu().numpy())
    return np.concatenate(parts)


def require_maskable(dataset: Any, preprocessor: Any, masking: Masking) -> None:
    """Raise InputError (code "nothing-to-hide") if `masking` can hide nothing in any series or array."""
    blocks = (np.arange(start, min(start + BLOCK, len(dataset))) for start in range(0, len(dataset), BLOCK))
    if not any(maskable(dataset.select(block), preprocessor, masking).any() for block in blocks):
        raise InputError(
            f"masking {masking.kind!r} would hide nothing in any of the {len(dataset):,} {dataset.noun}, so that there "
            "would be nothing to learn; hide single observations instead.",
            code="nothing-to-hide",
            settings=[("masking", "ratio")],
        )
