"""Which objects are labelled: so many per class, other ones for another seed, and none that is scored."""

import numpy as np

from rotarymae_experiments.recipes.label_efficiency import draw

LABELS = np.repeat([6, 15, 42], [30, 8, 62])


def test_each_class_gives_as_many_as_asked_or_all_it_has():
    rows = np.arange(0, 100, 2)  # half of each class
    found = draw(LABELS, rows, 5, seed=0)
    assert np.isin(found, rows).all() and len(np.unique(found)) == len(found)
    assert np.unique(LABELS[found], return_counts=True)[1].tolist() == [5, 4, 5]
    np.testing.assert_array_equal(draw(LABELS, rows, None, seed=0), rows)


def test_the_seed_draws_them():
    rows = np.arange(100)
    np.testing.assert_array_equal(draw(LABELS, rows, 5, 1), draw(LABELS, rows, 5, 1))
    assert set(draw(LABELS, rows, 5, 1)) != set(draw(LABELS, rows, 5, 2))
