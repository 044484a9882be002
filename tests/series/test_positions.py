"""Further position columns: checked, sorted, told apart and carried by everything that gives back series."""

import numpy as np
import pytest

from rotarymae.errors import InputError
from rotarymae.series import SeriesDataset, Windows, hide
from rotarymae.series import dataset as dataset_module
from rotarymae.series.mapped import map_parts


def build(**changes):
    """Two series with latitude and longitude; the second has one time at two positions, out of order."""
    fields = {
        "times": [[0.0, 1.0, 2.0], [5.0, 5.0, 4.0, 6.0]],
        "values": [[1.0, 2.0, 3.0], [4.0, 5.0, 6.0, 7.0]],
        "positions": [[[1.0, 9.0], [2.0, 8.0], [3.0, 7.0]], [[2.0, 0.0], [1.0, 0.0], [5.0, 1.0], [6.0, 2.0]]],
        "position_names": ("lat", "lon"),
    }
    with pytest.warns(match="sorted"):
        return SeriesDataset.from_arrays(**(fields | changes))


def rows(dataset):
    """Each value → its time and position."""
    return {
        value: (time, *position)
        for value, time, position in zip(dataset.values[:, 0], dataset.times, dataset.positions.tolist(), strict=True)
    }


def test_observations_of_one_time_at_two_positions_stay_and_are_sorted():
    dataset = build()
    assert dataset.positions.dtype == np.float64 and dataset.position_names == ("lat", "lon")
    assert dataset.values[:, 0].tolist() == [1, 2, 3, 6, 5, 4, 7]  # within a time by position
    assert rows(dataset)[4] == (5, 2, 0) and rows(dataset)[6] == (4, 5, 1)
    assert "lat" in repr(dataset) and dataset[1].positions.tolist() == dataset.positions[3:].tolist()
    assert dataset[1].position_names == ("lat", "lon")


def test_one_observation_twice_is_one_at_the_same_position():
    same = [[[1.0, 9.0], [2.0, 8.0], [3.0, 7.0]], [[2.0, 0.0], [2.0, 0.0], [5.0, 1.0], [6.0, 2.0]]]
    with pytest.raises(InputError, match="lat 2"):
        SeriesDataset.from_arrays(
            [[0.0, 1.0, 2.0], [5.0, 5.0, 6.0, 7.0]],
            [np.zeros(3), np.arange(4.0)],
            positions=same,
            position_names=("lat", "lon"),
        )
    assert len(build(positions=same, duplicates="mean").times) == 6


@pytest.mark.parametrize("mapped", [False, True])
def test_whatever_gives_back_series_carries_positions(mapped, tmp_path, monkeypatch):
    dataset = build()
    where = rows(dataset)
    if mapped:
        columns = map_parts([dataset.columns], tmp_path)
        dataset = dataset_module.replace(dataset, **columns._asdict())
        monkeypatch.setattr(dataset_module, "SAMPLE", 2)
    hidden = hide(dataset, 0.4, seed=1)[:2]
    windows = Windows.cut(dataset, 2, 1).dataset
    kept = dataset.mask_observations(np.arange(7) % 2 == 0)
    for part in (dataset.select([1, 0, 1]), *hidden, windows, kept, dataset.with_values(["value"])):
        assert rows(part).items() <= where.items() and part.position_names == ("lat", "lon")
    assert dataset.gather(np.array([1])).positions.tolist() == dataset.positions[3:].tolist()


def test_content_and_names_count_in_the_fingerprint_and_in_tables():
    dataset = build()
    moved = dataset_module.replace(dataset, positions=dataset.positions + 1)
    named = dataset_module.replace(dataset, position_names=("x", "y"))
    bare = dataset_module.replace(dataset, positions=None, position_names=())
    assert len({one.fingerprint() for one in (dataset, moved, named, bare)}) == 4
    table = dataset.to_arrow()
    assert table.column_names == ["id", "time", "lat", "lon", "value"]
    assert table["lon"].to_pylist() == dataset.positions[:, 1].tolist()


@pytest.mark.parametrize(
    "change, part",
    [
        ({"positions": [[1.0, 2.0, 3.0], [1.0, 2.0, 3.0]]}, "(3, 1)"),
        ({"positions": [np.full((3, 2), np.nan), np.zeros((4, 2))]}, "'lat' is missing"),
        ({"position_names": ["lat"]}, "1 names for 2"),
        ({"positions": None}, "give positions=[...]"),
        ({"positions": [np.full(3, 1e39), np.zeros(4)], "position_names": ["lat"]}, "1e+39"),
    ],
)
def test_positions_that_do_not_fit_are_refused(change, part):
    fields = {"times": [[0.0, 1, 2], [0.0, 1, 2, 3]], "values": [np.zeros(3), np.zeros(4)]}
    positions = [np.zeros((3, 2)), np.zeros((4, 2))]
    with pytest.raises(InputError) as raised:
        SeriesDataset.from_arrays(**(fields | {"positions": positions, "position_names": ("lat", "lon")} | change))
    assert part in str(raised.value)


def test_parts_that_do_not_fit_together():
    dataset = build()
    for change in ({"position_names": ()}, {"positions": None}, {"positions": np.zeros((3, 2))}):
        with pytest.raises(InputError):
            dataset_module.replace(dataset, **change)
