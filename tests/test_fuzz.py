"""Odd input works or is refused by this library's own error: the same cases in every run (conftest.py).

scripts/fuzz.py looks for new ones.
"""

import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from _fuzz import arrays, good_files, good_models, outcome, tables, tokens, try_file, try_model

QUIET = {"deadline": None, "suppress_health_check": list(HealthCheck)}


@settings(max_examples=200, **QUIET)
@given(tables())
def test_tables(call):
    assert outcome(call) in ("worked", "refused")


@settings(max_examples=120, **QUIET)
@given(arrays())
def test_arrays(call):
    assert outcome(call) in ("worked", "refused")


@settings(max_examples=60, **QUIET)
@given(tokens())
def test_tokens(call):
    with torch.no_grad():
        assert outcome(call) in ("worked", "refused")


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    folder = tmp_path_factory.mktemp("files")
    return good_files(folder), folder


@settings(max_examples=150, **QUIET)
@given(st.integers(0, 2**32))
def test_files(files, seed):
    assert try_file(seed, *files) in ("worked", "refused")


@pytest.fixture(scope="module")
def models(tmp_path_factory):
    return good_models(tmp_path_factory.mktemp("models")), tmp_path_factory.mktemp("made up")


@settings(max_examples=200, **QUIET)
@given(st.integers(0, 2**32))
def test_model_folders_with_right_checksums_and_wrong_contents(models, seed):
    assert try_model(seed, *models) in ("worked", "refused")


@pytest.mark.parametrize("seed", [61, 144, 207, 226, 569])
def test_an_arrow_file_with_wrong_offsets_does_not_end_the_process(files, seed):
    """Arrow reads what such offsets point at, wherever that is."""
    assert try_file(seed, *files) in ("worked", "refused")


def test_a_column_whose_name_is_no_text_is_refused(files):
    assert try_file(175029, *files) == "refused"


def test_damaged_metadata_of_parquet_are_refused(files):
    assert try_file(223, *files) == "refused"
