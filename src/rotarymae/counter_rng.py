"""Random numbers as a pure function of (seed, epoch, example), and torch generators as a function of a key."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

Noise = Callable[[int], Tensor]  # from n to the next n uniform random numbers in [0, 1) of each of B rows, [B, n]
_MASK64 = (1 << 64) - 1
_GOLDEN = np.uint64(0x9E3779B97F4A7C15)


def counter_uniform(seed: int, epoch: int, ids: np.ndarray | Sequence[int], stream: int = 0) -> Noise:
    """Return a function that draws uniform numbers, which depend only on (seed, epoch, id, stream) and a counter.

    Call it with n to get the next n float32 numbers in [0, 1) for each of the B ids, [B, n]; calls with 2 and 3 give
    the same numbers as one with 5. An id gets the same numbers whatever other ids there are, in any order and in any
    process: splitmix64 (Steele et al. 2014) mixes key and counter.

    Args:
        seed, epoch: any integers of Python's type.
        ids: B integers, one for each row, such as the indices of examples.
        stream: a number from 0 that separates kinds of draws. Use another one for draws whose number depends on the
            padded length of a batch, or later draws would depend on the padding.
    """
    key = _mix(_mix(np.uint64(seed & _MASK64)) ^ np.uint64(epoch & _MASK64))
    key = _mix(key ^ np.uint64(stream)) if stream else key
    start = _mix(np.asarray(ids).astype(np.uint64) ^ key)[:, None]
    drawn = 0

    def noise(n: int) -> Float[Tensor, "B n"]:
        """Return the next n uniform numbers in [0, 1) of each of B ids, float32 [B, n]; move the counter on by n."""
        nonlocal drawn
        counter = np.arange(drawn, drawn + n, dtype=np.uint64)[None, :]
        drawn += n
        bits = _mix(start + counter * _GOLDEN)
        return torch.from_numpy((bits >> np.uint64(40)).astype(np.float32) * np.float32(2.0**-24))

    return noise


def make_generator(*key: int) -> torch.Generator:
    """Return a torch generator on the CPU, seeded by the integers `key`, none negative.

    Equal keys give equal numbers; different keys of as many integers, all below 2^32, give independent ones.
    """
    state = np.random.SeedSequence(key).generate_state(1, np.uint64)[0]
    return torch.Generator().manual_seed(int(state >> np.uint64(1)))


def standard_normal(uniform: Float[Tensor, "*shape"]) -> Float[Tensor, "*shape"]:
    """Turn uniform numbers in [0, 1) into standard normal ones of the same shape, float32, from -4.8 to 4.8."""
    return torch.special.ndtri(uniform.double().clamp(1e-6, 1 - 1e-6)).float()


def _mix(x: np.ndarray | np.uint64) -> np.ndarray:
    """Scramble uint64 integers of any shape by the output function of splitmix64; return uint64 of the same shape."""
    with np.errstate(over="ignore"):
        z = np.asarray(x + _GOLDEN, dtype=np.uint64)
        z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        return np.asarray(z ^ (z >> np.uint64(31)))
