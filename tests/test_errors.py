"""Suggestions: only names that are nearly alike, behind a whole sentence."""

import pytest

from conftest import refuses
from rotarymae.errors import choose, did_you_mean


@pytest.mark.parametrize(
    ("name", "known", "wanted"),
    [
        ("tim", ["day", "time"], "time"),
        ("FLUX", ["flux", "time"], "flux"),
        ("flux", ["FLUX", "TIME"], "FLUX"),
        ("embed_dims", ["embed_dim", "depth"], "embed_dim"),
        ("gcs", ["glucose", "time"], None),  # alike by letters, not in meaning
        ("mjd", ["time", "band"], None),
        ("x", [], None),
    ],
)
def test_a_name_is_suggested_when_it_is_nearly_alike(name, known, wanted):
    assert did_you_mean(name, known) == (f" Did you mean {wanted!r}?" if wanted else "")


def test_choose_gives_the_option_what_came_and_what_there_is():
    choose("pool", "cls", ("cls", "mean"))
    with refuses("pool='men'", "'cls', 'mean'", "Did you mean 'mean'?"):
        choose("pool", "men", ("cls", "mean"))
