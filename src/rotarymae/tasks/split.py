"""Random parts of a data set."""

from __future__ import annotations

import numpy as np

from rotarymae.errors import InputError


def split_off(rows: np.ndarray, classes: np.ndarray | None, share: float, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """(rest, part): a random share of the rows, with every class in both as far as it goes, and in `rest` always:
    a class that nothing has trained on could only be missed. `classes` [S] are those of all series, or None.

    Raises:
        InputError: too few for two parts.
    """
    from sklearn.model_selection import train_test_split

    by, stratify = None if classes is None else np.unique(classes, return_inverse=True)[1][rows], None
    if by is not None:
        counts = np.unique(by, return_counts=True)[1]
        smaller = int(min(share, 1 - share) * len(rows))
        stratify = None if counts.min() < 2 or len(counts) > smaller else by
    order = np.arange(len(rows))
    try:
        rest, part = train_test_split(order, test_size=share, random_state=seed % 2**32, stratify=stratify)
    except ValueError:
        raise InputError(f"a share of {share} of {len(rows)} series leaves too few to train on; keep less.") from None
    rest, part = np.asarray(rest), np.asarray(part)
    if by is not None:
        lost = part[~np.isin(by[part], by[rest])]
        moved = lost[np.unique(by[lost], return_index=True)[1]]
        rest, part = np.concatenate([rest, moved]), np.setdiff1d(part, moved)
    return rows[np.sort(rest)], rows[np.sort(part)]
