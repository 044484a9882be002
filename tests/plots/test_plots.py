import io

import matplotlib
import numpy as np
import pytest
from matplotlib.colors import to_hex
from matplotlib.figure import Figure

from rotarymae import plots
from rotarymae.errors import InputError


def drawn(figure):
    """Draws the figure, so that layout and ticks are tried too; returns it."""
    assert isinstance(figure, Figure)
    figure.savefig(io.BytesIO(), format="png", dpi=40)
    return figure


def shown_axes(figure):
    return [axes for axes in figure.axes if axes.get_visible()]


def six_bands(**changes):
    generator = np.random.default_rng(0)
    channels = np.repeat(np.arange(6), 5)
    curve = np.repeat(np.arange(6), 20)
    arguments = {
        "times": generator.uniform(0, 100, 30),
        "values": generator.normal(size=30) * 1e4,
        "channels": channels,
        "errors": np.full(30, 3.0),
        "hidden": np.arange(30) % 3 == 0,
        "curve_times": np.tile(np.linspace(0, 100, 20), 6),
        "curve_mean": generator.normal(size=120),
        "curve_std": np.ones(120),
        "curve_channels": curve,
        "channel_names": tuple("ugrizY"),
    }
    return arguments | changes


def test_interpolation_gives_each_lsst_band_a_panel_in_its_own_colour():
    figure = drawn(plots.interpolation(**six_bands(time_label="time (days)", value_label="flux", title="object 7")))
    axes = shown_axes(figure)
    assert [a.get_title(loc="left") for a in axes] == list("ugrizY")
    colours = [to_hex(a.collections[0].get_facecolor()[0]) for a in axes]
    assert colours == ["#0c71ff", "#49be61", "#c61c00", "#ffc200", "#f341a2", "#5d0000"]
    assert "time (days)" in [a.get_xlabel() for a in axes] and figure.get_suptitle() == "object 7"
    texts = [text.get_text() for text in figure.legends[0].get_texts()]
    assert texts == ["seen by the model ± 1σ", "hidden from it ± 1σ", "prediction", "68% band", "95% band"]


def test_bands_are_the_central_68_and_95_percent():
    arguments = {"times": [0.0, 1.0], "values": [0.0, 0.0], "curve_times": [1.0, 0.0], "curve_mean": [5.0, 5.0]}
    wide, narrow = plots.interpolation(**arguments, curve_std=[2.0, 2.0]).axes[0].collections[:2]
    for band, reach in ((narrow, 0.994458 * 2), (wide, 1.959964 * 2)):
        edges = band.get_paths()[0].vertices[:, 1]
        assert edges.min() == pytest.approx(5 - reach) and edges.max() == pytest.approx(5 + reach)
    (band,) = plots.interpolation(**arguments, curve_bands={0.68: ([1, 1], [9, 9])}).axes[0].collections
    assert band.get_paths()[0].vertices[:, 1].max() == 9


def test_hidden_points_are_hollow_and_seen_ones_filled():
    axes = plots.interpolation([0, 1, 2], [1, 2, 3], hidden=[False, True, False]).axes[0]
    faces = {tuple(line.get_xdata()): to_hex(line.get_markerfacecolor()) for line in axes.lines}
    assert faces == {(0.0, 2.0): plots.COLOURS[0], (1.0,): "#ffffff"}


def test_the_curve_is_drawn_in_order_of_time():
    axes = plots.interpolation([0], [0], curve_times=[3, 1, 2], curve_mean=[30, 10, 20]).axes[0]
    assert axes.lines[0].get_xdata().tolist() == [1, 2, 3] and axes.lines[0].get_ydata().tolist() == [10, 20, 30]


def test_asinh_axis_and_shared_panel():
    figure = drawn(plots.interpolation(**six_bands(asinh_scale=10.0, panels=False)))
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
    assert len(shown_axes(figure)) == (count if count > 2 else 1)


def test_styles_are_distinct():
    assert len(set(plots.channel_style([f"channel {i}" for i in range(128)]))) == 128
    assert plots.channel_style(["g", "red"])[0] == (plots.COLOURS[0], "o")  # not LSST's bands alone


@pytest.mark.parametrize(
    "change,message",
    [
        ({"values": [1.0]}, "values has shape"),
        ({"errors": [1.0]}, "errors has shape"),
        ({"channels": np.full(30, 6)}, "channels run from 6 to 6"),
        ({"curve_bands": {0.68: ([0], [1])}}, "not both"),
        ({"curve_mean": None}, "belong together"),
        ({"asinh_scale": -1.0}, "must be a positive value"),
        ({"curve_std": None, "curve_bands": {68: ([0] * 120, [1] * 120)}}, "between 0 and 1"),
    ],
)
def test_interpolation_refuses(change, message):
    with pytest.raises(InputError, match=message):
        plots.interpolation(**six_bands(**change))


def test_learning_curves_mark_the_lowest_validation_loss():
    stages = {
        "pre-training": {"training": ([1, 2, 3], [100.0, 10.0, 1.0]), "validation": ([1, 2, 3], [100.0, 3.0, 5.0])},
        "fine-tuning": {"training": ([1], [-0.5])},
    }
    figure = drawn(plots.learning_curves(stages))
    first, second = figure.axes
    assert first.get_yscale() == "log" and second.get_yscale() == "linear"
    assert [axes.get_title(loc="left") for axes in figure.axes] == list(stages)
    mark = first.lines[-1]
    assert (mark.get_xdata()[0], mark.get_ydata()[0]) == (2, 3)
    texts = [text.get_text() for text in first.get_legend().get_texts()]
    assert texts == ["training", "validation", "lowest: 3"]
    with pytest.raises(InputError, match="at least one stage"):
        plots.learning_curves({})


def test_confusion_is_normalised_by_row():
    axes = drawn(plots.confusion([[3, 1, 0], [0, 2, 0], [0, 0, 0]], ["star", "nova", "none"])).axes[0]
    assert [text.get_text() for text in axes.texts] == ["75", "25", "100"]
    np.testing.assert_allclose(axes.images[0].get_array(), [[0.75, 0.25, 0], [0, 1, 0], [0, 0, 0]])
    assert [label.get_text() for label in axes.get_yticklabels()] == ["star  (4)", "nova  (2)", "none  (0)"]
    with pytest.raises(InputError, match="wanted"):
        plots.confusion([[1, 2]], ["a", "b"])
    with pytest.raises(InputError, match="not negative"):
        plots.confusion([[-1]], ["a"])


def test_calibration():
    axes = drawn(plots.calibration([0.95, 0.5], [0.9, 0.4])).axes[0]
    assert axes.lines[1].get_xdata().tolist() == [0.5, 0.95] and axes.lines[1].get_ydata().tolist() == [0.4, 0.9]
    with pytest.raises(InputError):
        plots.calibration([0.5], [0.4, 0.3])


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
    with pytest.raises(InputError, match="choose 'pca' or 'tsne'"):
        plots.project(embeddings, "umap")
    with pytest.raises(InputError, match="embeddings has shape"):
        plots.project(np.full((5, 3), np.nan))


def test_embedding_map():
    points = np.arange(12.0).reshape(6, 2)
    figure = drawn(plots.embedding_map(points, [0, 0, 0, 1, 1, 3], ["a", "b", "c", "d"], method="PCA"))
    assert [text.get_text() for text in figure.legends[0].get_texts()] == ["a (3)", "b (2)", "c (0)", "d (1)"]
    assert [len(part.get_offsets()) for part in figure.axes[0].collections] == [3, 2, 1]
    assert figure.axes[0].get_xlabel() == "PCA 1"
    assert not drawn(plots.embedding_map(points)).legends
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


def test_frequency_error():
    figure = drawn(plots.frequency_error([1, 2, 3], {"scaled": [0.1, 0.1, 0.1], "times in [0, 1]": [0.1, 0.2, 0.4]}))
    assert [text.get_text() for text in figure.legends[0].get_texts()] == ["scaled", "times in [0, 1]"]
    assert figure.axes[0].get_yscale() == "log" and "Hz" in figure.axes[0].get_xlabel()
    assert plots.frequency_error([1], {"a": [0.0]}).axes[0].get_yscale() == "linear"
    with pytest.raises(InputError):
        plots.frequency_error([1, 2], {"a": [1.0]})


def test_regression():
    figure = drawn(plots.regression([1, 2, 3], [1, 2.5, np.nan], name="mass ($)"))
    axes = figure.axes[0]
    assert axes.get_xlim() == axes.get_ylim() and axes.get_xlim()[0] < 1 and axes.get_xlim()[1] > 3
    assert axes.get_xlabel() == r"true mass (\$)"
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
    drawn(plots.frequency_error([1, 2], {name: [0.1, 0.2]}))
    drawn(plots.learning_curves({name: {name: ([1, 2], [2.0, 1.0])}}))
