"""The figures of a report: what is drawn, in whose colours, and that no name and no setting changes it."""

import io

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
    }
    return arguments | changes


def test_interpolation_gives_each_lsst_band_a_panel_in_its_own_colour():
    figure = drawn(plots.interpolation(**six_bands(time_label="time (days)", value_label="flux", title="object 7")))
    axes = shown_axes(figure)
    assert [a.get_title(loc="left") for a in axes] == list("ugrizY")
    colours = [to_hex(a.collections[0].get_facecolor()[0]) for a in axes]
    assert colours == ["#0c71ff", "#49be61", "#c61c00", "#ffc200", "#f341a2", "#5d0000"]
    assert [a.get_xlabel() for a in axes] == [""] * 4 + ["time (days)"] * 2
    assert figure.get_supylabel() == "flux" and figure.get_suptitle() == "object 7"
    texts = [text.get_text() for text in figure.legends[0].get_texts()]
    assert texts == ["seen ± 1σ", "hidden ± 1σ", "prediction", "68% band", "95% band"]


def test_bands_are_drawn_as_given_the_widest_first_and_the_curve_in_order_of_time():
    curve = plots.Curve([1.0, 0.0], [5.0, 6.0], {0.68: ([4, 3], [6, 7]), 0.95: ([1, 1], [9, 9])})
    axes = plots.interpolation([0.0, 1.0], [0.0, 0.0], curve=curve).axes[0]
    wide, narrow = axes.collections[:2]
    for band, reach in ((narrow, (3, 7)), (wide, (1, 9))):
        edges = band.get_paths()[0].vertices[:, 1]
        assert (edges.min(), edges.max()) == reach
    assert axes.lines[0].get_xdata().tolist() == [0, 1] and axes.lines[0].get_ydata().tolist() == [6, 5]


def test_hidden_points_are_hollow_and_seen_ones_filled():
    axes = plots.interpolation([0, 1, 2], [1, 2, 3], hidden=[False, True, False]).axes[0]
    faces = {tuple(part.get_offsets()[:, 0]): to_hex(part.get_facecolor()[0]) for part in axes.collections}
    assert faces == {(0.0, 2.0): plots.COLOURS[0], (1.0,): "#ffffff"}


@pytest.mark.parametrize("scale,values", [(20, [0.0, 0.1]), (20, [-3.0, -3.0]), (1e-3, [0, 1e7])])
def test_asinh_axis_has_ticks_within_the_data(scale, values):
    axes = drawn(plots.interpolation([0, 1], values, asinh_scale=scale)).axes[0]
    low, high = axes.get_ylim()
    assert axes.get_yscale() == "asinh" and low <= min(values) and max(values) <= high
    assert sum(low <= tick <= high for tick in axes.get_yticks()) >= 2


def test_a_wide_band_leaves_the_observations_visible():
    curve = plots.Curve([0, 1], [0.5, 0.5], {0.95: ([-1e9, 0], [1e9, 1])})
    axes = drawn(plots.interpolation([0, 1, 2], [0.0, 1.0, 0.5], curve=curve)).axes[0]
    assert axes.get_ylim() == (-2, 3)


@pytest.mark.parametrize("count", [1, 2, 4, 17])
def test_any_number_of_channels(count):
    names = [f"sensor {i}" for i in range(count)]
    figure = plots.interpolation(np.arange(count), np.ones(count), channels=np.arange(count), channel_names=names)
    assert len(shown_axes(drawn(figure))) == count


def test_styles_are_distinct():
    assert len(set(plots.channel_style([f"channel {i}" for i in range(128)]))) == 128
    assert plots.channel_style(["g", "red"])[0] == (plots.COLOURS[0], "o")  # not LSST's bands alone


def labels_of(axis):
    return [label.get_text() for label in axis.get_ticklabels()]


def test_times_and_values_are_labelled_as_they_are_and_not_from_an_offset():
    times, values = np.linspace(19812.5, 19812.9, 9), np.linspace(5e6 + 0.1, 5e6 + 0.2, 9)
    axes = drawn(plots.interpolation(times, values)).axes[0]
    for axis, low, high in ((axes.xaxis, 19812.4, 19813), (axes.yaxis, 5e6, 5e6 + 0.3)):
        assert axis.get_offset_text().get_text() == ""
        shown = [float(text.replace(",", "")) for text in labels_of(axis)]
        assert len(set(shown)) > 1 and all(low <= x <= high for x in shown)


def test_days_since_1970_are_labelled_as_dates():
    start = np.datetime64("2024-03-01").astype(int)
    curve = plots.Curve([start, start + 60], [1, 2], {0.68: ([0, 1], [2, 3])})
    axes = drawn(plots.interpolation([start, start + 60.5], [1, 2], curve=curve, dates=True)).axes[0]
    assert {"Mar", "Apr"} & set(labels_of(axes.xaxis)) and "2024" in axes.xaxis.get_offset_text().get_text()


def test_magnitudes_are_drawn_bright_side_up():
    some = plots.interpolation([0, 1, 0, 1], [2.0, 1.0] * 2, channels=[0, 0, 1, 1], channel_names="ux", invert=("x",))
    limits = [axes.get_ylim() for axes in drawn(some).axes[:2]]
    assert [low > high for low, high in limits] == [False, True]


def test_learning_curves_mark_the_lowest_validation_loss():
    losses = {"training": ([1, 2, 3], [100.0, 10.0, 1.0]), "validation": ([1, 2, 3], [100.0, 3.0, 5.0])}
    figure = drawn(plots.learning_curves(losses, "pre-training"))
    axes = figure.axes[0]
    assert axes.get_yscale() == "log" and axes.get_title(loc="left") == "pre-training"
    mark = axes.lines[-1]
    assert (mark.get_xdata()[0], mark.get_ydata()[0]) == (2, 3)
    assert [text.get_text() for text in figure.legends[0].get_texts()] == ["training", "validation", "lowest: 3"]
    assert plots.learning_curves({"training": ([1], [-0.5])}, "").axes[0].get_yscale() == "linear"


def test_confusion_is_normalised_by_row():
    axes = drawn(plots.confusion([[3, 1, 0], [0, 2, 0], [0, 0, 0]], ["star", "nova", "none"])).axes[0]
    assert [text.get_text() for text in axes.texts] == ["75", "25", "0", "0", "100", "0", "0", "0", "0"]
    np.testing.assert_allclose(axes.images[0].get_array(), [[75, 25, 0], [0, 100, 0], [0, 0, 0]])
    assert labels_of(axes.yaxis) == ["star  (4)", "nova  (2)", "none  (0)"]


def test_roc_and_precision_recall_by_hand():
    positive = np.array([False, True, False, True])
    axes = drawn(plots.roc(positive, [0.1, 0.3, 0.35, 0.8], "nova")).axes[0]
    assert axes.get_ylabel() == "true positive rate of nova" and "0.75" in axes.get_legend().get_texts()[0].get_text()
    axes = drawn(plots.precision_recall(positive, [0.1, 0.3, 0.35, 0.8], "nova")).axes[0]
    texts = [text.get_text() for text in axes.get_legend().get_texts()]
    assert "0.83" in texts[0] and "0.5" in texts[1]  # (1 + 2/3) / 2


def test_reliability_is_the_share_that_is_right_among_equally_confident_verdicts():
    confidence = np.repeat([0.55, 0.95], 10)
    correct = np.r_[np.arange(10) < 4, np.ones(10, bool)]
    axes = drawn(plots.reliability(correct, confidence)).axes[0]
    assert axes.lines[0].get_xdata() == pytest.approx([0.55, 0.95])
    assert axes.lines[0].get_ydata() == pytest.approx([0.4, 1.0])


def test_project():
    generator = np.random.default_rng(0)
    plane = generator.normal(size=(40, 2)) * [5, 1]
    embeddings = plane @ np.linalg.qr(generator.normal(size=(6, 2)))[0].T
    points = plots.project(embeddings, "PCA")
    # PCA of points in a plane keeps their distances, and puts the larger spread first.
    between = lambda x: np.linalg.norm(x[:, None] - x[None], axis=-1)  # noqa: E731
    np.testing.assert_allclose(between(points), between(plane), atol=1e-9)
    assert points[:, 0].std() > points[:, 1].std()
    assert plots.project(embeddings[:8], "t-SNE").shape == (8, 2)


def test_embedding_map():
    points, labels = np.arange(12.0).reshape(6, 2), np.array([0, 0, 0, 1, 1, 3])
    figure = drawn(plots.embedding_map(points, labels, ["a", "b", "c", "d"], "PCA"))
    assert [text.get_text() for text in figure.legends[0].get_texts()] == ["a (3)", "b (2)", "c (0)", "d (1)"]
    assert [len(part.get_offsets()) for part in figure.axes[0].collections] == [3, 2, 1]
    assert figure.axes[0].get_xlabel() == "PCA 1"
    assert not plots.embedding_map(points, None, None, "PCA").legends


@pytest.mark.parametrize("shape", [(4, 6), (4, 6, 3)])
def test_reconstruction(shape):
    image = np.random.default_rng(0).random(shape)
    masked = image.copy()
    masked[:, :3] = np.nan
    figure = drawn(plots.reconstructed(image, masked, image))
    assert len(figure.axes) == 3 and figure.axes[0].get_title(loc="left") == "input"


def test_predictions_of_equal_numbers_can_be_drawn():
    axes = drawn(plots.predicted_against_true([1.0, 2.0, 3.0], [1.0, 2.5, 2.0], "mass ($)")).axes[0]
    assert len(axes.collections[0].get_offsets()) == 3 and axes.get_ylabel() == r"true mass (\$)"
    drawn(plots.predicted_against_true([1.0, 1.0], [1.0, 1.0]))
    axes = drawn(plots.calibration([0.5, 0.95], [0.4, 0.9])).axes[0]
    assert axes.lines[0].get_ydata().tolist() == [0.4, 0.9]


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
    drawn(plots.interpolation([0, 1], [1, 2], channels=[0, 1], channel_names=[name, name], title=name))
    drawn(plots.confusion(np.eye(2), [name, "b"]))
    drawn(plots.embedding_map(np.eye(2), np.array([0, 1]), [name, "b"], "PCA"))
    drawn(plots.roc([True, False], [0.2, 0.1], name))
