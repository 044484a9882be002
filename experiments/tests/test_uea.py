"""UEA files: read line by line as they say, refused by line, and thinned without moving what is left."""

from pathlib import Path

import numpy as np
import pytest

import _uea
from rotarymae.errors import InputError
from rotarymae_experiments.data import uea

ARCHIVE = Path(__file__).resolve().parents[3] / "shared" / "data" / "uea"
HEAD = "# a comment\n@problemName Made\n@timeStamps false\n@classLabel true up down\n@data\n"


def put(tmp_path, body, head=HEAD):
    path = tmp_path / "made.ts"
    path.write_text(head + body)
    return path


def test_read_by_hand(tmp_path):
    path = put(tmp_path, "1,2.5,-3:4,5,6:down\n\n# between\n7,8:?,9e1:up\n".replace("?,9e1", "9,9e1"))
    data, labels = uea.read_ts(path)
    assert labels.tolist() == ["down", "up"]
    assert data.lengths.tolist() == [3, 2] and data.value_names == ("dimension_0", "dimension_1")
    assert data.times.tolist() == [0, 1, 2, 0, 1]
    assert data.values.tolist() == [[1, 4], [2.5, 5], [-3, 6], [7, 9], [8, 90]]
    assert data.channels is None


def test_a_time_that_all_dimensions_lack_is_left_out(tmp_path):
    data, _ = uea.read_ts(put(tmp_path, "1,?,3:4,?,6:up\n"))
    assert data.times.tolist() == [0, 2] and data.values.tolist() == [[1, 4], [3, 6]]


@pytest.mark.parametrize(
    "content",
    [
        *("", HEAD, HEAD[:-6] + "1,2:up\n", HEAD.replace("true up down", "false") + "1,2:up\n"),
        *(HEAD + body for body in ("1,2:3:up\n", "1,two:up\n", "(0,1):up\n", "up\n", "1,2:left\n", "1,?:3,4:up\n")),
    ],
)
def test_what_is_not_as_published_is_refused(tmp_path, content):
    with pytest.raises(InputError, match=r"made\.ts is not as published"):
        uea.read_ts(put(tmp_path, "", content))


def test_a_problem_has_two_parts(tmp_path):
    folder = _uea.write(tmp_path)
    problem = uea.read(folder, "BasicMotions")
    assert len(problem.train) == len(problem.test) == 24
    assert problem.train_labels.tolist() == ["still", "slow", "fast", "wild"] * 6
    assert not np.array_equal(problem.train.values, problem.test.values)
    with pytest.raises(InputError, match=r"Epilepsy_TRAIN.ts is missing. .*https.*--data-dir"):
        uea.read(folder, "Epilepsy")
    test = folder / "BasicMotions" / "BasicMotions_TEST.ts"
    other_class = test.read_text().replace(":wild", ":odd").replace("fast wild", "fast wild odd")
    fewer = "\n".join(line.split(":", 1)[-1] for line in test.read_text().splitlines())
    for content, message in ((other_class, r"training part lacks: \['odd'\]"), (fewer, "another number of dimensions")):
        test.write_text(content)
        with pytest.raises(InputError, match=rf"_TEST.ts is not as published .*{message}"):
            uea.read(folder, "BasicMotions")


def test_times_are_left_out_and_the_others_stay_where_they_are(tmp_path):
    data = uea.read(_uea.write(tmp_path, length=31), "BasicMotions").train
    thin = uea.without_times(data, 0.3, np.random.default_rng(5))
    assert (thin.lengths == 31 - int(0.3 * 31)).all() and thin.ids.tolist() == data.ids.tolist()
    for before, after in zip(data, thin, strict=True):
        np.testing.assert_array_equal(after.values, before.values[after.times.astype(int)])
    assert len({tuple(series.times) for series in thin}) > 20  # each series its own
    again = uea.without_times(data, 0.3, np.random.default_rng(5))
    np.testing.assert_array_equal(thin.times, again.times)
    np.testing.assert_array_equal(uea.without_times(data, 0.0, np.random.default_rng(5)).times, data.times)
    with pytest.raises(InputError, match="share is 1"):
        uea.without_times(data, 1, np.random.default_rng(5))


@pytest.mark.skipif(not ARCHIVE.is_dir(), reason=f"{ARCHIVE} is not there")
@pytest.mark.parametrize(
    "name, train, test, dimensions, longest, classes",
    [("BasicMotions", 40, 40, 6, 100, 4), ("Epilepsy", 137, 138, 3, 206, 4), ("JapaneseVowels", 270, 370, 12, 29, 9)],
)
def test_the_archives_own_files(name, train, test, dimensions, longest, classes):
    problem = uea.read(ARCHIVE, name)
    assert (len(problem.train), len(problem.test), len(problem.train.value_names)) == (train, test, dimensions)
    assert max(problem.train.lengths.max(), problem.test.lengths.max()) == longest
    assert len(set(problem.train_labels)) == len(set(problem.test_labels)) == classes
