"""The figures of a report: what is drawn, in whose colours, and that no name and no setting changes it."""

import io
from itertools import pairwise

import matplotlib
import numpy as np
import pytest
from matplotlib.colors import to_hex

from rotarymae import plots


def drawn(figure):
    """Draw a figure, so that layout and ticks are tried too."""
    figure.savefig(io.BytesIO(), format="png", dpi=40)
    return figure


def shown_axes(figure):
    return [axes for axes in figure.axes if axes.get_visible()]


def six_bands(**changes):
    generator = np.random.default_rng(0)
    mean = generator.normal(size=120)
    arguments = {
        "times": generator.uniform(0, 100, 30),
        "values": generator.normal(size=30) * 1e4,
        "channels": np.repeat(np.arange(6), 5),
        "errors": np.full(30, 3.0),
        "hidden": np.arange(30) % 3 == 0,
        "curve": plots.Curve(
            np.tile(np.linspace(0, 100, 20), 6),
            mean,
            {0.68: (mean - 1, mean + 1), 0.95: (mean - 2, mean + 2)},
            np.repeat(np.arange(6), 20),
        ),
        "channel_names": tuple("ugrizY"),
        "shown": np.arange(6),
    }
    return arguments | changes


def one_channel(times, values, **given):
    return plots.interpolation(times, values, np.zeros(len(times), int), ("",), shown=[0], **given)


def test_interpolation_gives_each_lsst_band_a_panel_in_its_own_colour():
    figure = drawn(plots.interpolation(**six_bands(time_label="time (days)", value_label="flux")))
    axes = shown_axes(figure)
    assert [a.get_title(loc="left") for a in axes] == list("ugrizY")
    colours = [to_hex(a.collections[0].get_facecolor()[0]) for a in axes]
    assert colours == ["#0c71ff", "#49be61", "#c61c00", "#ffc200", "#f341a2", "#5d0000"]
    assert [a.get_xlabel() for a in axes] == [""] * 4 + ["time (days)"] * 2
    assert figure.get_supylabel() == "flux"
    texts = {text.get_text() for text in figure.legends[0].get_texts()}
    assert texts == {"seen", "hidden", "prediction", "68% band", "95% band"}


def test_bands_are_drawn_as_given_the_widest_first():
    curve = plots.Curve([0.0, 1.0], [6.0, 5.0], {0.68: ([3, 4], [7, 6]), 0.95: ([1, 1], [9, 9])}, [0, 0])
    axes = one_channel([0.0, 1.0], [0.0, 0.0], curve=curve).axes[0]
    wide, narrow = axes.collections[:2]
    for band, reach in ((narrow, (3, 7)), (wide, (1, 9))):
        edges = band.get_paths()[0].vertices[:, 1]
        assert (edges.min(), edges.max()) == reach
    assert axes.lines[0].get_ydata().tolist() == [6, 5]


def test_hidden_points_are_hollow_and_seen_ones_filled():
    axes = one_channel([0, 1, 2], [1, 2, 3], hidden=np.array([False, True, False])).axes[0]
    faces = {tuple(line.get_xdata()): to_hex(line.get_markerfacecolor()) for line in axes.lines}
    assert faces == {(0.0, 2.0): plots.COLOURS[0], (1.0,): "#ffffff"}


def test_a_wide_band_leaves_the_observations_visible():
    curve = plots.Curve([0, 1], [0.5, 0.5], {0.95: ([-1e9, 0], [1e9, 1])}, [0, 0])
    axes = drawn(one_channel([0, 1, 2], [0.0, 1.0, 0.5], curve=curve)).axes[0]
    assert axes.get_ylim() == (-2, 3)


@pytest.mark.parametrize("count", [1, 2, 4, 17])
def test_any_number_of_channels(count):
    names, channels = [f"sensor {i}" for i in range(count)], np.arange(count)
    figure = plots.interpolation(channels, np.ones(count), channels, names, shown=channels)
    assert len(shown_axes(drawn(figure))) == count


def test_styles_are_distinct():
    assert len(set(plots.channel_style([f"channel {i}" for i in range(128)]))) == 128
    assert plots.channel_style(["g", "red"])[0] == (plots.COLOURS[0], "o")  # not LSST's bands alone


def labels_of(axis):
    return [label.get_text() for label in axis.get_ticklabels()]


def test_times_and_values_are_labelled_as_they_are_and_not_from_an_offset():
    times, values = np.linspace(19812.5, 19812.9, 9), np.linspace(5e6 + 0.1, 5e6 + 0.2, 9)
    axes = drawn(one_channel(times, values)).axes[0]
    for axis, low, high in ((axes.xaxis, 19812.4, 19813), (axes.yaxis, 5e6, 5e6 + 0.3)):
        assert axis.get_offset_text().get_text() == ""
        shown = [float(text.replace(",", "")) for text in labels_of(axis)]
        assert len(set(shown)) > 1 and all(low <= x <= high for x in shown)


def test_days_since_1970_are_labelled_as_dates():
    start = np.datetime64("2024-03-01").astype(int)
    curve = plots.Curve([start, start + 60], [1, 2], {0.68: ([0, 1], [2, 3])}, [0, 0])
    axes = drawn(one_channel([start, start + 60.5], [1, 2], curve=curve, dates=True)).axes[0]
    assert {"Mar", "Apr"} & set(labels_of(axes.xaxis)) and "2024" in axes.xaxis.get_offset_text().get_text()


def test_a_figure_depends_on_no_global_setting_and_changes_none():
    def picture():
        buffer = io.BytesIO()
        plots.interpolation(**six_bands()).savefig(buffer, format="png", dpi=40)
        return buffer.getvalue()

    before, usual = dict(matplotlib.rcParams), picture()
    with matplotlib.rc_context({"axes.facecolor": "black", "lines.linewidth": 9, "axes.grid": False}):
        figure = plots.interpolation(**six_bands())
    buffer = io.BytesIO()
    figure.savefig(buffer, format="png", dpi=40)
    assert buffer.getvalue() == usual and dict(matplotlib.rcParams) == before


@pytest.mark.parametrize("name", ["$_$", "cost in $ or a$", "_hidden", "", "x" * 80])
def test_any_name_can_be_drawn(name):
    drawn(plots.interpolation([0, 1], [1, 2], [0, 1], [name, name], shown=[0, 1], time_label=name, value_label=name))


def test_the_axis_of_a_channel_is_by_its_own_values():
    """Creatinine next to sodium is no outlier; a few bright values among faint ones are."""
    draw = np.random.default_rng(0)
    values = np.concatenate([draw.normal(1, 0.1, 20), draw.normal(140, 5, 20), [*draw.normal(0, 1, 18), 400, 900]])
    channels = np.repeat([0, 1, 2], 20)
    figure = plots.interpolation(np.tile(np.arange(20), 3), values, channels, ("a", "b", "c"), shown=[0, 1, 2])
    assert [axes.get_yscale() for axes in shown_axes(drawn(figure))] == ["linear", "linear", "symlog"]


@pytest.mark.parametrize("span", [320, 3, 1.6])
@pytest.mark.parametrize("kind", ["interpolation", "excerpts"])
def test_dates_below_narrow_panels_do_not_overlap(kind, span):
    days = 18_638 + np.tile(np.linspace(0, span, 9), 2)
    if kind == "interpolation":
        figure = plots.interpolation(days, days - 18_000, np.repeat([0, 1], 9), ("a", "b"), shown=[0, 1], dates=True)
    else:
        times, odd = (days[:9] * 86_400e3).astype("datetime64[ms]"), np.arange(9) == 4
        figure = plots.excerpts([plots.Excerpt("a", "odd", times, days[:9], odd, np.zeros(9))] * 3, "value")
    figure.canvas.draw()  # at the resolution at which the boxes are given
    for axes in shown_axes(figure):
        boxes = [one.get_window_extent() for one in axes.get_xticklabels() if one.get_text()]
        assert len(boxes) > 1 and all(one.x1 < other.x0 for one, other in pairwise(boxes))
