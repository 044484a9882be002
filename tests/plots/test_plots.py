import io

import matplotlib
import numpy as np
import pytest
from matplotlib.collections import PathCollection
from matplotlib.colors import to_hex
from matplotlib.figure import Figure

from rotarymae import plots
from rotarymae.errors import InputError


def drawn(result):
    """Draws what a function returned, so that layout and ticks are tried too; returns its figure."""
    figure = result if isinstance(result, Figure) else plots.figure_of(result)
    figure.savefig(io.BytesIO(), format="png", dpi=40)
    return figure


def shown_axes(figure):
    return [axes for axes in figure.axes if axes.get_visible()]


def six_bands(**changes):
    generator = np.random.default_rng(0)
    channels = np.repeat(np.arange(6), 5)
    mean = generator.normal(size=120)
    bands = {0.68: (mean - 1, mean + 1), 0.95: (mean - 2, mean + 2)}
    arguments = {
        "times": generator.uniform(0, 100, 30),
        "values": generator.normal(size=30) * 1e4,
        "channels": channels,
        "errors": np.full(30, 3.0),
        "hidden": np.arange(30) % 3 == 0,
        "curve": plots.Curve(np.tile(np.linspace(0, 100, 20), 6), mean, bands, np.repeat(np.arange(6), 20)),
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


def test_bands_are_drawn_as_given_the_widest_first():
    curve = plots.Curve([1.0, 0.0], [5.0, 5.0], {0.68: ([4, 3], [6, 7]), 0.95: ([1, 1], [9, 9])})
    wide, narrow = plots.interpolation([0.0, 1.0], [0.0, 0.0], curve=curve).axes[0].collections[:2]
    for band, reach in ((narrow, (3, 7)), (wide, (1, 9))):
        edges = band.get_paths()[0].vertices[:, 1]
        assert (edges.min(), edges.max()) == reach


def test_hidden_points_are_hollow_and_seen_ones_filled():
    axes = plots.interpolation([0, 1, 2], [1, 2, 3], hidden=[False, True, False]).axes[0]
    faces = {tuple(line.get_xdata()): to_hex(line.get_markerfacecolor()) for line in axes.lines}
    assert faces == {(0.0, 2.0): plots.COLOURS[0], (1.0,): "#ffffff"}


def test_importance_is_area_and_what_speaks_against_is_hollow():
    axes = drawn(plots.interpolation([0, 1, 2], [1.0, 2.0, 3.0], importance=[0.5, -1.0, 0.0], errors=[1, 1, 1])).axes[0]
    filled, hollow = [part for part in axes.collections if isinstance(part, PathCollection)]
    assert filled.get_offsets()[:, 0].tolist() == [0, 2] and hollow.get_offsets().tolist() == [[1, 2]]
    assert to_hex(hollow.get_facecolor()[0]) == "#ffffff" != to_hex(filled.get_facecolor()[0])
    half, least = filled.get_sizes() - filled.get_sizes().min()
    assert half == pytest.approx((hollow.get_sizes()[0] - filled.get_sizes()[1]) / 2) and least == 0
    texts = [text.get_text() for text in axes.figure.legends[0].get_texts()]
    assert texts == ["speaks for it ± 1σ", "speaks against it ± 1σ"]
    with pytest.raises(InputError, match=r"2.*3"):
        plots.interpolation([0, 1, 2], [1.0, 2.0, 3.0], importance=[0.5, 1.0])


def test_the_curve_is_drawn_in_order_of_time():
    axes = plots.interpolation([0], [0], curve=plots.Curve([3, 1, 2], [30, 10, 20], {})).axes[0]
    assert axes.lines[0].get_xdata().tolist() == [1, 2, 3] and axes.lines[0].get_ydata().tolist() == [10, 20, 30]


def test_asinh_axis():
    figure = drawn(plots.interpolation([0, 1, 2], [-1e4, 0, 1e4], asinh_scale=10.0))
    (axes,) = shown_axes(figure)
    assert axes.get_yscale() == "asinh"
    ticks = axes.get_yticks()
    assert 0 in ticks and 3 <= len(ticks) <= 9 and np.isin(np.abs(ticks[ticks != 0]), 10.0 ** np.arange(1, 7)).all()
    assert plots.interpolation([0, 1], [0, 1]).axes[0].get_yscale() == "linear"


@pytest.mark.parametrize("scale,values", [(20, [0.0, 0.1]), (20, [1e6, 2e6]), (20, [-3.0, -3.0]), (1e-3, [0, 1e7])])
def test_asinh_axis_always_has_ticks_within_the_data(scale, values):
    axes = drawn(plots.interpolation([0, 1], values, asinh_scale=scale)).axes[0]
    low, high = axes.get_ylim()
    assert low <= min(values) and max(values) <= high
    assert 2 <= sum(low <= tick <= high for tick in axes.get_yticks()) <= 9


@pytest.mark.parametrize("count", [1, 2, 4, 17])
def test_any_number_of_channels(count):
    names = [f"sensor {i}" for i in range(count)]
    figure = drawn(
        plots.interpolation(np.arange(count), np.ones(count), channels=np.arange(count), channel_names=names)
    )
    assert len(shown_axes(figure)) == count


def test_styles_are_distinct():
    assert len(set(plots.channel_style([f"channel {i}" for i in range(128)]))) == 128
    assert plots.channel_style(["g", "red"])[0] == (plots.COLOURS[0], "o")  # not LSST's bands alone


@pytest.mark.parametrize(
    "change,message",
    [
        ({"values": [1.0]}, "values has shape"),
        ({"errors": [1.0]}, "errors has shape"),
        ({"channels": np.full(30, 6)}, "channels run from 0 to 6"),
        ({"curve": plots.Curve([0], [0], {}, [6])}, "channels run from 0 to 6"),
        ({"asinh_scale": -1.0}, "must be a positive value"),
    ],
)
def test_interpolation_refuses(change, message):
    with pytest.raises(InputError, match=message):
        plots.interpolation(**six_bands(**change))


@pytest.mark.parametrize(
    "make,message",
    [
        (lambda: plots.Curve([0, 1], [0], {}), "mean of the curve has shape"),
        (lambda: plots.Curve([0], [0], {68: ([0], [1])}), "between 0 and 1"),
        (lambda: plots.Curve([0], [0], {0.68: ([0], [1, 2])}), "the band of 0.68 has shape"),
    ],
)
def test_curve_refuses(make, message):
    with pytest.raises(InputError, match=message):
        make()


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
    low, high = drawn(plots.interpolation([0, 1], [20.0, 18.0], invert=True)).axes[0].get_ylim()
    assert low > high
    low, high = drawn(plots.interpolation([0, 1], [20.0, 18.0])).axes[0].get_ylim()
    assert low < high
    some = plots.interpolation([0, 1, 0, 1], [2.0, 1.0] * 2, channels=[0, 0, 1, 1], channel_names="ux", invert=("x",))
    limits = [axes.get_ylim() for axes in drawn(some).axes[:2]]
    assert [low > high for low, high in limits] == [False, True]


def test_learning_curves_mark_the_lowest_validation_loss():
    losses = {"training": ([1, 2, 3], [100.0, 10.0, 1.0]), "validation": ([1, 2, 3], [100.0, 3.0, 5.0])}
    axes = plots.learning_curves(losses, title="pre-training")
    drawn(axes)
    assert axes.get_yscale() == "log" and axes.get_title(loc="left") == "pre-training"
    mark = axes.lines[-1]
    assert (mark.get_xdata()[0], mark.get_ydata()[0]) == (2, 3)
    texts = [text.get_text() for text in axes.get_legend().get_texts()]
    assert texts == ["training", "validation", "lowest: 3"]
    assert plots.learning_curves({"training": ([1], [-0.5])}).get_yscale() == "linear"
    with pytest.raises(InputError, match=r"least.*curve"):
        plots.learning_curves({})


def test_confusion_is_normalised_by_row():
    axes = drawn(plots.confusion([[3, 1, 0], [0, 2, 0], [0, 0, 0]], ["star", "nova", "none"])).axes[0]
    assert [text.get_text() for text in axes.texts] == ["75", "25", "0", "0", "100", "0", "0", "0", "0"]
    np.testing.assert_allclose(axes.images[0].get_array(), [[75, 25, 0], [0, 100, 0], [0, 0, 0]])
    assert [label.get_text() for label in axes.get_yticklabels()] == ["star  (4)", "nova  (2)", "none  (0)"]
    with pytest.raises(InputError, match="wanted"):
        plots.confusion([[1, 2]], ["a", "b"])
    with pytest.raises(InputError, match="not negative"):
        plots.confusion([[-1]], ["a"])


def test_calibration():
    axes = drawn(plots.calibration([0.95, 0.5], [0.9, 0.4])).axes[0]
    assert axes.lines[0].get_xdata().tolist() == [0.5, 0.95] and axes.lines[0].get_ydata().tolist() == [0.4, 0.9]
    with pytest.raises(InputError):
        plots.calibration([0.5], [0.4, 0.3])


def test_roc_and_precision_recall_by_hand():
    positive, score = [False, True, False, True], [0.1, 0.4, 0.35, 0.8]
    area = plots.roc(positive, score, name="nova")
    drawn(area)
    assert area.get_ylabel() == "true positive rate of nova"
    assert "1.00" in area.get_legend().get_texts()[0].get_text()
    assert "0.75" in plots.roc(positive, [0.1, 0.3, 0.35, 0.8]).get_legend().get_texts()[0].get_text()
    axes = plots.precision_recall(positive, [0.1, 0.3, 0.35, 0.8])
    drawn(axes)
    texts = [text.get_text() for text in axes.get_legend().get_texts()]
    assert "0.83" in texts[0] and "0.5" in texts[1]  # (1 + 2/3) / 2
    with pytest.raises(InputError, match="both classes"):
        plots.roc([True, True], [0.1, 0.2])
    with pytest.raises(InputError, match="positive has shape"):
        plots.precision_recall([True], [0.1, 0.2])


def test_reliability_is_the_share_that_is_right_among_equally_confident_verdicts():
    confidence = np.repeat([0.55, 0.95], 10)
    correct = np.r_[np.arange(10) < 4, np.ones(10, bool)]
    axes = plots.reliability(correct, confidence)
    drawn(axes)
    assert axes.lines[0].get_xdata() == pytest.approx([0.55, 0.95])
    assert axes.lines[0].get_ydata() == pytest.approx([0.4, 1.0])
    with pytest.raises(InputError, match="between 0 and 1"):
        plots.reliability([True], [1.5])


def test_functions_of_one_panel_draw_onto_given_axes():
    figure = Figure()
    grid = figure.subplots(2, 2)
    plots.roc([True, False], [0.2, 0.1], axes=grid[0, 0])
    plots.calibration([0.5], [0.5], axes=grid[0, 1])
    plots.embedding_map([[0, 0], [1, 1]], [0, 1], ["a", "b"], axes=grid[1, 0])
    assert plots.curves([1, 2], {"a": [1, 2]}, x_label="x", y_label="y", axes=grid[1, 1]) is grid[1, 1]
    drawn(figure)
    assert len(figure.axes) == 4 and all(axes.has_data() for axes in figure.axes)


def test_project():
    generator = np.random.default_rng(0)
    plane = generator.normal(size=(40, 2)) * [5, 1]
    embeddings = plane @ np.linalg.qr(generator.normal(size=(6, 2)))[0].T
    points = plots.project(embeddings)
    # PCA of points in a plane keeps their distances, and puts the larger spread first.
    between = lambda x: np.linalg.norm(x[:, None] - x[None], axis=-1)  # noqa: E731
    np.testing.assert_allclose(between(points), between(plane), atol=1e-9)
    assert points[:, 0].std() > points[:, 1].std()
    assert plots.project(embeddings[:8], "tsne").shape == (8, 2)
    with pytest.raises(InputError, match=r"'pca'.*'tsne'"):
        plots.project(embeddings, "umap")
    with pytest.raises(InputError, match="embeddings has shape"):
        plots.project(np.full((5, 3), np.nan))


def test_embedding_map():
    points = np.arange(12.0).reshape(6, 2)
    figure = drawn(plots.embedding_map(points, [0, 0, 0, 1, 1, 3], ["a", "b", "c", "d"], method="PCA"))
    assert [text.get_text() for text in figure.axes[0].get_legend().get_texts()] == ["a (3)", "b (2)", "c (0)", "d (1)"]
    assert [len(part.get_offsets()) for part in figure.axes[0].collections] == [3, 2, 1]
    assert figure.axes[0].get_xlabel() == "PCA 1"
    assert plots.embedding_map(points).get_legend() is None
    with pytest.raises(InputError, match="class names"):
        plots.embedding_map(points, [0, 0, 0, 0, 0, 2], ["a", "b"])
    with pytest.raises(InputError, match="points has shape"):
        plots.embedding_map(points[:, :1])


@pytest.mark.parametrize("shape", [(4, 6), (4, 6, 3), (2, 4, 6), (2, 4, 6, 3)])
def test_reconstruction(shape):
    image = np.random.default_rng(0).random(shape)
    masked = image.copy()
    masked[..., :3] = np.nan  # hides columns, or whole colours
    figure = drawn(plots.reconstruction(image, masked, image))
    assert len(figure.axes) == 3 * (2 if shape[0] == 2 else 1)
    with pytest.raises(InputError, match="must agree"):
        plots.reconstruction(image, masked[..., :1], image)


def test_curves():
    label = {"x_label": "frequency (Hz)", "y_label": "error"}
    axes = plots.curves([1, 2, 3], {"scaled": [0.1, 0.1, 0.1], "times in [0, 1]": [0.1, 0.2, 0.4]}, **label)
    drawn(axes)
    assert [text.get_text() for text in axes.get_legend().get_texts()] == ["scaled", "times in [0, 1]"]
    assert axes.get_yscale() == "log" and axes.get_xlabel() == "frequency (Hz)"
    assert plots.curves([1], {"a": [0.0]}, **label).get_yscale() == "linear"
    with pytest.raises(InputError):
        plots.curves([1, 2], {"a": [1.0]}, **label)


def test_regression():
    figure = drawn(plots.regression([1, 2, 3], [1, 2.5, np.nan], name="mass ($)"))
    axes = figure.axes[0]
    assert len(axes.collections[0].get_offsets()) == 2  # what is not finite is left out
    assert axes.get_ylabel() == r"true mass (\$)"
    drawn(plots.regression([1, 1], [1, 1]))
    with pytest.raises(InputError, match="predicted"):
        plots.regression([1, 2], [1])
    with pytest.raises(InputError, match="finite"):
        plots.regression([np.nan], [np.nan])


def test_no_global_state():
    before = dict(matplotlib.rcParams)
    drawn(plots.interpolation(**six_bands()))
    drawn(plots.confusion(np.eye(3), list("abc")))
    assert dict(matplotlib.rcParams) == before


@pytest.mark.parametrize("name", ["$_$", "cost in $ or a$", "_hidden", "", "x" * 80])
def test_any_name_can_be_drawn(name):
    drawn(plots.interpolation([0, 1], [1, 2], channels=[0, 1], channel_names=[name, name], title=name))
    drawn(plots.confusion(np.eye(2), [name, "b"]))
    drawn(plots.embedding_map([[0, 0], [1, 1]], [0, 1], [name, "b"]))
    drawn(plots.curves([1, 2], {name: [0.1, 0.2]}, x_label="x", y_label="y"))
    drawn(plots.learning_curves({name: ([1, 2], [2.0, 1.0])}, title=name))


def test_importance_that_is_missing_is_small():
    axes = drawn(plots.interpolation([0, 1, 2], [1.0, 2.0, 3.0], importance=[0.5, -1.0, np.nan])).axes[0]
    sizes = np.concatenate([found.get_sizes() for found in axes.collections if hasattr(found, "get_sizes")])
    assert np.isfinite(sizes).all() and sizes.min() == 4
