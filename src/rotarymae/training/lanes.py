"""Lanes: threads that take different rows through the model side by side, each with its share of the processor.

torch shares out one operator at a time. In models of this size many operators are too small to be shared, and at the
end of each the threads wait for one another. A lane takes its rows through the whole model, and the rows of one part
are few enough for what a block writes to stay in the processor's cache.

Gradients and losses are added in the order of the lanes, so a run gives the same bits twice. The limits below were
measured on two cores; for more they are reasoned.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from types import TracebackType
from typing import TypeVar

import numpy as np
import torch
from torch import Tensor, nn

from rotarymae.transformer import Attention, Block, DropPath

T = TypeVar("T")
R = TypeVar("R")

LEAST = 1024  # tokens a lane: steps of fewer gained nothing
TRAINING = 4096  # tokens of a part, padding counted, in training
INFERENCE = 2048  # and where nothing is kept for a backward pass
MOST = 6  # lanes: one of 1,024 tokens spends about a sixth of its time calling operators, under Python's lock


def lanes_for(device: torch.device, tokens: float) -> int:
    """How many are fastest for work of so many tokens at once: on the CPU up to one for each of torch's threads."""
    if device.type != "cpu":
        return 1
    return max(1, min(torch.get_num_threads(), MOST, int(tokens // LEAST)))


def alone(model: nn.Module) -> bool:
    """Whether training it keeps to one lane: it draws random numbers, of which threads share torch's generator, or its
    blocks are compiled, which threads that meet a new kind at the same time do twice or give up."""
    return _draws(model) or compiled(model)


def _draws(model: nn.Module) -> bool:
    for module in model.modules():
        rate = module.p if isinstance(module, nn.Dropout) else 0.0
        rate = module.dropout if isinstance(module, Attention) else rate
        rate = module.rate if isinstance(module, DropPath) else rate
        if rate > 0:
            return True
    return False


def compiled(model: nn.Module) -> bool:
    """Whether its blocks are compiled as they are called."""
    return any(isinstance(module, Block) and module._compiled_call_impl is not None for module in model.modules())


def cut(index: np.ndarray, lengths: np.ndarray, tokens: int, lanes: int = 1) -> list[np.ndarray]:
    """Examples in parts of about so many tokens at most, in their order; lanes have equally many, of nearly equal work.

    Examples that stand by length, as those of a batch do, are padded the less for it.
    """
    sizes = lengths[index]
    parts = lanes * max(1, math.ceil(len(index) * int(sizes.max()) / (tokens * lanes)))
    before = np.cumsum(sizes) - sizes / 2
    cuts = np.searchsorted(before, sizes.sum() * np.arange(1, parts) / parts)
    return [part for part in np.split(index, cuts) if len(part)]


class Lanes:
    """As a context, whose threads end with it.

    Args:
        count: 1 computes in the calling thread, with all of torch's threads.
    """

    def __init__(self, count: int) -> None:
        self.count = count
        self._pool = ThreadPoolExecutor(count - 1, "lane") if count > 1 else None

    def __enter__(self) -> Lanes:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._pool is not None:
            self._pool.shutdown()

    def map(self, work: Callable[[T], R], items: Sequence[T]) -> list[R]:
        """[work(item) for item in items]. The error of the first lane that has one is raised when all have ended.

        Other threads of this program that use torch meanwhile may be given fewer threads, too.
        """
        if self._pool is None:
            return [work(item) for item in items]

        def lane(first: int) -> list[R]:
            return [work(item) for item in items[first :: self.count]]

        threads = torch.get_num_threads()
        torch.set_num_threads(max(1, threads // self.count))
        try:
            found = self._turn(self._pool, lane, range(min(self.count, len(items))))
        finally:
            torch.set_num_threads(threads)
        return [found[i % self.count][i // self.count] for i in range(len(items))]

    def _turn(self, pool: ThreadPoolExecutor, lane: Callable[[int], R], numbers: range) -> list[R]:
        """lane(number) of all, the first in this thread."""
        later = [pool.submit(lane, number) for number in numbers[1:]]
        try:
            found = [lane(number) for number in numbers[:1]]
        finally:
            for other in later:
                other.exception()  # waits
        return found + [other.result() for other in later]

    def backward(self, loss: Callable[[T], Tensor], items: Sequence[T], parameters: Sequence[nn.Parameter]) -> None:
        """Adds the gradients of the sum of loss(item) to the parameters'."""
        if self._pool is None:
            for item in items:
                loss(item).backward()
            return

        def lane(first: int) -> list[Tensor | None]:
            total: list[Tensor | None] = [None] * len(parameters)
            for item in items[first :: self.count]:
                own = torch.autograd.grad(loss(item), parameters, allow_unused=True)
                total = [_sum(a, b) for a, b in zip(total, own, strict=True)]
            return total

        found = self.map(lane, range(min(self.count, len(items))))
        for parameter, *gradients in zip(parameters, *found, strict=True):
            total = functools.reduce(_sum, gradients)
            if total is not None:
                parameter.grad = total.clone() if parameter.grad is None else parameter.grad + total


def _sum(one: Tensor | None, other: Tensor | None) -> Tensor | None:
    """Never in place: gradients of two parameters may be one tensor, and all elements of one a single place."""
    if one is None or other is None:
        return other if one is None else one
    return one + other
