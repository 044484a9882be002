"""Masked arrays as plain ones."""

import numpy as np

from rotarymae.system import unmasked


def test_masked_texts_are_nan_however_short_the_others():
    assert unmasked(np.ma.array(["a", "b"], mask=[False, True])).tolist() == ["a", "nan"]
    assert unmasked(np.ma.array(["longer", "b"], mask=[False, True])).tolist() == ["longer", "nan"]
