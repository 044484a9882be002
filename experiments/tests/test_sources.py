"""The words of a reader that misses a file."""

import pytest

from rotarymae_experiments.data.sources import SOURCES, missing


@pytest.mark.parametrize("name", SOURCES)
def test_a_missing_file_says_where_to_get_it_and_its_licence(name):
    said = str(missing("x.ts", name))
    assert "x.ts is missing" in said and SOURCES[name].home in said and SOURCES[name].licence in said
