"""Which series go together, in which order, and how a batch is made of them.

The order is a pure function of (seed, epoch), and a batch of (seed, epoch, its series): nothing remembers where it
was, so a run can be resumed anywhere, on any number of processes and workers, with the same batches.
"""

from __future__ import annotations

import hashlib
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, replace
from typing import Any, Protocol, TypeVar

import numpy as np
import torch
from torch import Tensor

from rotarymae.errors import InputError
from rotarymae.masking import Masking, rows, split
from rotarymae.scaling import Preprocessor
from rotarymae.series import SeriesDataset
from rotarymae.store import Blocks
from rotarymae.tokens import Tokens

T = TypeVar("T")
POOL = 64  # batches sorted by length together: enough for batches of nearly equal lengths, few enough to stay shuffled


@dataclass(frozen=True, eq=False)
class Batch:
    """What one step reads.

    Attributes:
        series: [B] places in the data set, on the host.
        inputs: the tokens the encoder sees.
        masked: the hidden tokens, in pre-training only.
        targets: labels [B] or values, in supervised training only.
    """

    series: np.ndarray
    inputs: Tokens
    masked: Tokens | None = None
    targets: Tensor | None = None

    def to(self, device: torch.device | str) -> Batch:
        return replace(
            self,
            inputs=self.inputs.to(device, non_blocking=True),
            masked=None if self.masked is None else self.masked.to(device, non_blocking=True),
            targets=None if self.targets is None else self.targets.to(device, non_blocking=True),
        )


class Examples(Protocol):
    """What the training loop needs of its data.

    It may also have `blocks: Blocks | None`: where the examples lie in a file, for an order that reads it well.
    """

    @property
    def lengths(self) -> np.ndarray:
        """Tokens of each example [S]."""
        ...

    def batch(self, index: np.ndarray, epoch: int | None) -> Batch:
        """The batch of these examples; epoch None asks for the fixed one that evaluation uses."""
        ...

    def fingerprint(self) -> str:
        """Changes when the data do."""
        ...


def plan(
    lengths: np.ndarray,
    seed: int,
    epoch: int,
    batch_size: int | None = None,
    batch_tokens: int | None = None,
    blocks: Blocks | None = None,
) -> list[np.ndarray]:
    """The batches of one epoch, as places in the data set: every example once.

    Examples are shuffled, cut into pools of about 64 batches, sorted by length within their pool, cut into batches of
    `batch_size` examples or of at most `batch_tokens` tokens (padding counted), and the batches shuffled within the
    pool. A single example longer than the budget is a batch of its own.

    With `blocks` the examples are shuffled, and pools cut, within windows: as many random blocks of the file as memory
    holds. So each block is read once; the last batch of a window is smaller.
    """
    # As uint64: numpy would make float64 of a seed beyond int64 beside an epoch.
    keys = [np.array([number & (2**64 - 1), epoch], np.uint64) for number in (seed, seed + 1)]
    draw = np.random.Generator(np.random.Philox(key=keys[0]))
    windows = [draw.permutation(len(lengths))]
    if blocks is not None:
        windows = blocks.windows(draw.permutation(len(blocks.rows)), draw.random(len(lengths)))
    shuffle = np.random.Generator(np.random.Philox(key=keys[1]))
    batches: list[np.ndarray] = []
    for pool in (pool for window in windows for pool in _pools(window, lengths, batch_size, batch_tokens)):
        ordered = pool[np.argsort(lengths[pool], kind="stable")]
        cuts = in_order(lengths[ordered], batch_size, batch_tokens)
        parts = [ordered[cut] for cut in cuts]
        batches += [parts[i] for i in shuffle.permutation(len(parts))]
    return batches


def by_length(
    lengths: np.ndarray,
    batch_size: int | None = None,
    batch_tokens: int | None = None,
    blocks: Blocks | None = None,
) -> list[np.ndarray]:
    """Batches of examples of nearly equal lengths, in a fixed order, for evaluation; with `blocks` within windows."""
    windows = [np.argsort(lengths, kind="stable")]
    if blocks is not None:
        windows = blocks.windows(np.arange(len(blocks.rows)), lengths)
    return [window[cut] for window in windows for cut in in_order(lengths[window], batch_size, batch_tokens)]


def in_order(lengths: np.ndarray, batch_size: int | None = None, batch_tokens: int | None = None) -> list[np.ndarray]:
    """Consecutive places cut into batches of `batch_size` examples or at most `batch_tokens` padded tokens."""
    if (batch_size is None) == (batch_tokens is None):
        raise InputError("give either batch_size (examples) or batch_tokens (tokens), not both and not neither.")
    if (batch_size or batch_tokens or 0) < 1:
        raise InputError(f"batch_size {batch_size}, batch_tokens {batch_tokens}; wanted at least 1.")
    if batch_size is not None:
        return [np.arange(i, min(i + batch_size, len(lengths))) for i in range(0, len(lengths), batch_size)]
    budget, batches, start = int(batch_tokens or 0), [], 0
    while start < len(lengths):
        # The longest so far times the number so far never falls, so the end can be searched for.
        window = np.maximum.accumulate(lengths[start : start + budget])
        room = np.searchsorted(window * np.arange(1, len(window) + 1), budget, side="right")
        batches.append(np.arange(start, start + max(1, int(room))))
        start = int(batches[-1][-1]) + 1
    return batches


def _pools(
    order: np.ndarray, lengths: np.ndarray, batch_size: int | None, batch_tokens: int | None
) -> Iterator[np.ndarray]:
    if batch_tokens is None:
        size = POOL * (batch_size or 1)
        yield from (order[i : i + size] for i in range(0, len(order), size))
        return
    pool = np.cumsum(lengths[order], dtype=np.int64) // (POOL * batch_tokens)
    yield from np.split(order, np.flatnonzero(np.diff(pool)) + 1)


def padding_waste(lengths: np.ndarray, batches: Sequence[np.ndarray]) -> float:
    """The share of padded tokens among all that the batches hold."""
    held = sum(len(batch) * int(lengths[batch].max()) for batch in batches)
    return 1.0 - float(sum(int(lengths[batch].sum()) for batch in batches)) / held


class SeriesExamples:
    """Batches of a SeriesDataset, scaled, and masked or with targets.

    Args:
        dataset: series; places in it are what a batch's index means.
        preprocessor: fitted on training data.
        seed: of masks and augmentation.
        masking: how tokens are hidden, for pre-training; a new draw each epoch, a fixed one for evaluation.
        targets: labels (integers) or values, one row a series, for supervised training.
        drop: augmentation; up to this share of a series' observations is left out, drawn anew each epoch.
        noise: augmentation; standard deviation of normal noise added to standardised values.
    """

    def __init__(
        self,
        dataset: SeriesDataset,
        preprocessor: Preprocessor,
        seed: int = 0,
        masking: Masking | None = None,
        targets: np.ndarray | None = None,
        drop: float = 0.0,
        noise: float = 0.0,
    ) -> None:
        preprocessor.check(dataset)
        if not 0 <= drop < 1 or noise < 0:
            raise InputError(f"drop {drop}, noise {noise}; wanted 0 <= drop < 1 and noise >= 0.")
        if targets is not None and len(targets) != len(dataset):
            raise InputError(f"{len(targets)} targets for {len(dataset)} series; wanted one each.")
        self.dataset = dataset
        self.preprocessor = preprocessor
        self.seed = seed
        self.masking = masking
        self.targets = None if targets is None else torch.as_tensor(targets)
        self.drop = drop
        self.noise = noise
        self.lengths = np.asarray(dataset.lengths)
        self.blocks = dataset.blocks

    def fingerprint(self) -> str:
        return self.dataset.fingerprint()

    def identity(self) -> dict[str, Any]:
        """All that batches are made of, as JSON: a run is resumed only with the same."""
        targets = None if self.targets is None else hashlib.sha256(self.targets.numpy().tobytes()).hexdigest()
        own = {"targets": targets, "preprocessor": self.preprocessor.to_dict(), "seed": self.seed}
        own |= {"masking": None if self.masking is None else asdict(self.masking), "drop": self.drop}
        return {"series": self.fingerprint(), **own, "noise": self.noise}

    def batch(self, index: np.ndarray, epoch: int | None) -> Batch:
        tokens = assemble(self.dataset, self.preprocessor, index)
        # Evaluation draws from a stream of its own: the same masks in every epoch and for every model.
        draw, thin, radius, angle = (rows(self.seed, -1 if epoch is None else epoch, index, i) for i in range(4))
        if epoch is not None and self.drop > 0:
            tokens = _thin(tokens, self.drop, thin)
        if epoch is not None and self.noise > 0:
            values = tokens.values + self.noise * _normal(tokens, radius, angle)
            tokens = replace(tokens, values=values, check_values=False)
        masked = None
        if self.masking is not None:
            # One phase an epoch; evaluation draws row by row, so that its masks do not depend on anything else.
            phase = None if epoch is None else float(rows(self.seed, epoch, [-1])(1))
            mask = self.masking(tokens, draw, phase)
            # One process's part of a batch may be rows in which there is nothing to hide; its part of the loss is 0.
            tokens, masked = split(tokens, mask) if mask.any() else (tokens, _nothing(tokens))
        targets = None if self.targets is None else self.targets[torch.from_numpy(index)]
        return Batch(index, tokens, masked, targets)


def assemble(dataset: SeriesDataset, preprocessor: Preprocessor, index: np.ndarray) -> Tokens:
    """Tokens of the series at `index`, scaled, padded behind to the longest; by slices, without a loop over series."""
    lengths = dataset.offsets[index + 1] - dataset.offsets[index]
    times, channels, values = dataset.gather(index)
    channels = np.zeros(len(times), np.int64) if channels is None else channels
    values = preprocessor.values.transform(values, channels)
    first = np.cumsum(lengths) - lengths
    origins = np.zeros(len(index)) if preprocessor.positions.origin == "zero" else times[first]
    positions = place(preprocessor, times, channels, origins, lengths)
    return _padded(values, positions, lengths)


def place(
    preprocessor: Preprocessor, times: np.ndarray, channels: np.ndarray, origins: np.ndarray, lengths: np.ndarray
) -> np.ndarray:
    """Positions [n, A] of flat times and channels (from 0) of series with these origins and lengths."""
    at = preprocessor.positions.times(times, origins, lengths)
    if preprocessor.channel_names is None:
        return at[:, None]
    # Index axes count from 1: [CLS] is at 0.
    return np.stack([at, (channels + 1) * preprocessor.positions.channel_spacing], axis=1)


def _padded(values: np.ndarray, positions: np.ndarray, lengths: np.ndarray) -> Tokens:
    longest = int(lengths.max())
    if (lengths == longest).all():
        shape = (len(lengths), longest, -1)
        return Tokens(
            torch.from_numpy(values.astype(np.float32).reshape(shape)),
            torch.from_numpy(positions.astype(np.float32).reshape(shape)),
        )
    real = np.arange(longest)[None, :] < lengths[:, None]
    out = []
    for flat in (values, positions):
        table = np.zeros((len(lengths), longest, flat.shape[1]), np.float32)
        table[real] = flat
        out.append(torch.from_numpy(table))
    return Tokens(out[0], out[1], torch.from_numpy(~real))


def _nothing(tokens: Tokens) -> Tokens:
    """Tokens of as many rows with nothing in them."""
    values, positions = tokens.values[:, :1] * 0, tokens.positions[:, :1] * 0
    return Tokens(values, positions, torch.ones(values.shape[:2], dtype=torch.bool), check_values=False)


def _thin(tokens: Tokens, drop: float, draw: Callable[[int], Tensor]) -> Tokens:
    """Leaves out a random share, up to `drop`, of each row's tokens; at least one stays."""
    uniform = draw(tokens.length + 1)
    share, uniform = drop * uniform[:, :1], uniform[:, 1:]
    keep = tokens.real & (uniform >= share)
    # Whoever lost everything keeps the token that drew the largest number.
    best = uniform.masked_fill(~tokens.real, -1.0).argmax(1, keepdim=True)
    keep.scatter_(1, best, True)
    order = (~keep).to(torch.uint8).argsort(dim=1, stable=True)
    count = keep.sum(1)
    longest = int(count.max())
    padding = torch.arange(longest)[None, :] >= count[:, None]
    return replace(tokens, padding=None, check_values=False).select(order[:, :longest], padding)


def _normal(tokens: Tokens, radius: Callable[[int], Tensor], angle: Callable[[int], Tensor]) -> Tensor:
    """Standard normal numbers in the shape of the values (Box-Muller), from two streams of each row."""
    size = tokens.length * tokens.features
    away = (-2 * torch.log1p(-radius(size))).sqrt()
    return (away * torch.cos(2 * torch.pi * angle(size))).view_as(tokens.values)


def prefetch(make: Callable[[np.ndarray], T], batches: Sequence[np.ndarray], workers: int) -> Iterator[T]:
    """make(batch) for each, in order; with workers, up to two batches for each of them are made ahead in threads."""
    if workers == 0:
        yield from map(make, batches)
        return
    with ThreadPoolExecutor(workers) as pool:
        ahead = deque(pool.submit(make, batch) for batch in batches[: 2 * workers])
        for i in range(len(batches)):
            made = ahead.popleft().result()
            if i + 2 * workers < len(batches):
                ahead.append(pool.submit(make, batches[i + 2 * workers]))
            yield made
