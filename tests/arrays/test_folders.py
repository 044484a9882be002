"""Folders of pictures and sounds: what is read, what is left out and said, what is refused, and the command on them."""

import json
import os

import numpy as np
import pyarrow.parquet as pq
import pytest
import scipy.io.wavfile
from PIL import Image

from conftest import SHORT, TINY, command, refuses
from rotarymae.arrays import ArrayDataset, read_pictures, read_sounds
from rotarymae.errors import InputWarning
from rotarymae.pipeline import Pipeline

SMALL = ["--predictor", "model", *TINY]


def write_pictures(folder, count=12, seed=0):
    """Pictures of unequal sizes in the folders "dark" and "light", as PNG and JPEG."""
    draw = np.random.default_rng(seed)
    for i in range(count):
        kind = ("dark", "light")[i % 2]
        size = (*draw.integers(8, 20, 2), 3)
        pixels = draw.integers(0, 100, size) + (i % 2) * 150
        place = folder / kind
        place.mkdir(parents=True, exist_ok=True)
        Image.fromarray(pixels.astype(np.uint8)).save(place / f"{i:02d}.{'png' if i % 3 else 'jpg'}")
    return folder


def write_sounds(folder, count=12, rate=16_000, seed=0):
    """Tones of unequal lengths in the folders "low" and "high", as WAV."""
    draw = np.random.default_rng(seed)
    for i in range(count):
        time = np.arange(int(rate * draw.uniform(0.2, 0.6))) / rate
        tone = 0.5 * np.sin(2 * np.pi * (300 if i % 2 else 3000) * time) + 0.05 * draw.normal(size=len(time))
        place = folder / ("low" if i % 2 else "high")
        place.mkdir(parents=True, exist_ok=True)
        scipy.io.wavfile.write(place / f"{i:02d}.wav", rate, (20_000 * tone).astype(np.int16))
    return folder


def truncate(file):
    content = file.read_bytes()
    file.write_bytes(content[: len(content) // 2])


def test_pictures_are_read_in_the_order_of_their_paths_with_their_classes(tmp_path):
    folder = write_pictures(tmp_path)
    (folder / "notes.txt").write_text("not a picture", encoding="utf-8")
    (folder / ".hidden.png").write_bytes(b"not looked at")
    found = read_pictures(folder, 4)
    assert found.dataset.ids.tolist()[:2] == ["dark/00.jpg", "dark/02.png"]
    assert found.labels is not None and found.labels.tolist() == ["dark"] * 6 + ["light"] * 6
    png = np.array(Image.open(folder / "dark" / "02.png"))
    assert np.array_equal(found.dataset.arrays[1], png)
    assert "12 of 12 pictures read" in found.dataset.reading.notes and "1 other" in found.dataset.reading.notes[1]
    flat = read_pictures(folder / "dark", 4)
    assert flat.labels is None and flat.dataset.ids[0] == "00.jpg"
    (folder / "alone.png").write_bytes((folder / "dark" / "02.png").read_bytes())
    mixed = read_pictures(folder, 4)
    assert mixed.labels is not None and mixed.labels.tolist()[0] is None and mixed.labels.tolist()[1] == "dark"


def test_sizes_colours_depth_and_turns(tmp_path):
    draw = np.random.default_rng(0)
    pixels = draw.integers(0, 256, (16, 32, 3), dtype=np.uint8)
    Image.fromarray(pixels).save(tmp_path / "a.png")
    assert read_pictures(tmp_path, 4, longest_side=16).dataset.arrays[0].shape == (8, 16, 3)
    assert read_pictures(tmp_path, 4, longest_side=64).dataset.arrays[0].shape == (16, 32, 3)
    assert read_pictures(tmp_path, 4, channels=1).dataset.channels == 1
    with refuses("longest_side is 2", "at least 4"):
        read_pictures(tmp_path, 4, longest_side=2)
    turned = Image.Exif()
    turned[0x0112] = 6  # the camera stood on its side
    Image.fromarray(pixels).save(tmp_path / "a.png", exif=turned)
    assert np.array_equal(read_pictures(tmp_path, 4).dataset.arrays[0], np.rot90(pixels, -1))
    deep = draw.integers(0, 60_000, (8, 8)).astype(np.uint16)
    (tmp_path / "grey").mkdir()
    Image.fromarray(deep).save(tmp_path / "grey" / "deep.tif")
    grey = read_pictures(tmp_path / "grey", 4).dataset.arrays[0][..., 0]
    assert np.allclose(grey, deep / 257)  # white is 255 in any depth
    assert read_pictures(tmp_path, 4).dataset.arrays[1].max() < 255
    Image.fromarray(deep.astype(np.float32)).save(tmp_path / "grey" / "deep.tif")
    with refuses("different depths", "8 or 16 bits (a.png)", "fractions (deep.tif)"):
        read_pictures(tmp_path, 4)
    Image.fromarray(pixels[..., 0]).save(tmp_path / "grey" / "deep.tif")
    both = read_pictures(tmp_path, 4).dataset  # a grey one among coloured ones
    assert both.channels == 3 and np.array_equal(both.arrays[1][..., 2], pixels[..., 0])
    frames = [Image.fromarray(pixels), Image.fromarray(pixels[::-1])]
    frames[0].save(tmp_path / "b.tif", save_all=True, append_images=frames[1:])
    with pytest.warns(InputWarning, match="first frame or page is read of pictures with several: 'b.tif'"):
        assert np.array_equal(read_pictures(tmp_path, 4).dataset.arrays[1], pixels)


def test_pictures_of_every_mode_are_scaled_down_alike(tmp_path):
    grey = np.tile(np.linspace(0, 255, 64, dtype=np.uint8)[:, None], 32)
    turned = Image.Exif()
    turned[0x0112] = 6
    Image.fromarray(grey).save(tmp_path / "a.png")
    Image.fromarray((grey.astype(np.uint16) * 257).astype(">u2")).save(tmp_path / "big_endian.tif")
    Image.fromarray(np.arange(64 * 32).reshape(64, 32) % 3 == 0).save(tmp_path / "bits.png")
    Image.fromarray(np.dstack([grey, grey, grey, 0 * grey])).save(tmp_path / "clear.png")
    Image.fromarray(np.rot90(grey)).save(tmp_path / "turned.tif", exif=turned)
    plain, deep, bits, clear, upright = read_pictures(tmp_path, 4, longest_side=16).dataset.arrays
    for other in (deep, clear, upright):
        assert np.allclose(other, plain, atol=1)
    assert set(np.unique(bits)) - {0, 255}
    assert np.array_equal(read_pictures(tmp_path / "turned.tif", 4).dataset.arrays[0][..., 0], grey)


def test_a_broken_picture_is_named_counted_and_left_out(tmp_path):
    folder = write_pictures(tmp_path)
    truncate(folder / "dark" / "02.png")
    (folder / "light" / "03.jpg").write_text("no picture at all", encoding="utf-8")
    Image.new("RGB", (3, 9)).save(folder / "light" / "05.png")
    with pytest.warns(InputWarning, match=r"3 of 12 pictures.*dark/02.png.*light/03.jpg.*light/05.png.*truncated"):
        found = read_pictures(folder, 4)
    assert len(found.dataset) == 9 and found.dataset.reading.left_out == ("dark/02.png", "light/03.jpg", "light/05.png")
    for file in (folder / "light").iterdir():
        file.write_bytes(b"")
    with refuses("6 pictures", "01.png"):
        read_pictures(folder / "light", 4)


def test_what_is_named_as_a_picture_and_is_none_is_not_opened(tmp_path):
    """PostScript is a program that Pillow would have Ghostscript run."""
    pages = "%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 100 100\n%%EndComments\nshowpage\n"
    (tmp_path / "a.png").write_text(pages, encoding="utf-8")
    with refuses("a.png", "identify", "image"):
        read_pictures(tmp_path, 4)


def test_folders_without_what_is_wanted(tmp_path):
    with refuses("missing", "is no folder", "pictures"):
        read_pictures(tmp_path / "missing", 4)
    with refuses("holds no pictures", "files"):
        read_pictures(tmp_path, 4)
    write_sounds(tmp_path, 2)
    with refuses("holds no pictures", "files"):
        read_pictures(tmp_path, 4)
    (tmp_path / "loop").symlink_to(tmp_path)
    assert len(read_sounds(tmp_path).dataset) == 2


def test_sounds(tmp_path):
    folder = write_sounds(tmp_path)
    found = read_sounds(folder)
    assert found.labels is not None and found.labels.tolist() == ["high"] * 6 + ["low"] * 6
    assert found.dataset.sample_rate == 16_000 and found.dataset.channels == 1
    rate, samples = scipy.io.wavfile.read(folder / "high" / "00.wav")
    assert np.allclose(found.dataset.arrays[0], ArrayDataset.from_waveforms([samples], rate).arrays[0], atol=1e-3)
    stereo = np.stack([samples, np.zeros_like(samples)], 1)
    scipy.io.wavfile.write(folder / "high" / "00.wav", rate, stereo)
    halved = read_sounds(folder).dataset.arrays[0]
    strong = found.dataset.arrays[0] > 5  # where the floor of silence does not count
    assert np.allclose((halved - found.dataset.arrays[0])[strong], 2 * np.log(0.5), atol=0.02)


def test_a_sound_of_another_sample_rate_is_resampled_with_a_warning(tmp_path):
    folder = write_sounds(tmp_path, 4)
    write_sounds(tmp_path / "other", 2, rate=22_050)
    with pytest.warns(InputWarning, match="4 of 6 sounds are resampled to 22050 Hz, the sample rate of the model"):
        assert read_sounds(folder, sample_rate=22_050).dataset.sample_rate == 22_050
    with pytest.warns(InputWarning, match="2 of 6 sounds are resampled to 16000 Hz, the sample rate of the first"):
        found = read_sounds(folder).dataset
    assert len(found) == 6
    tone = np.exp(found.arrays[list(found.ids).index("other/low/01.wav")][..., 0]).mean(0)
    same = np.exp(found.arrays[list(found.ids).index("low/01.wav")][..., 0]).mean(0)
    assert abs(int(tone.argmax()) - int(same.argmax())) <= 1


def test_a_sound_with_nan_is_named_and_left_out(tmp_path):
    folder = write_sounds(tmp_path, 4)
    scipy.io.wavfile.write(folder / "low" / "01.wav", 16_000, np.full(16_000, np.nan, np.float32))
    with pytest.warns(InputWarning, match=r"1 of 4 sounds.*low/01.wav: it holds NaN or infinity; .* numbers\.$"):
        assert len(read_sounds(folder).dataset) == 3


def test_a_broken_sound_is_named_and_left_out(tmp_path):
    folder = write_sounds(tmp_path, 4)
    (folder / "low" / "01.wav").write_bytes(b"RIFF")
    scipy.io.wavfile.write(folder / "low" / "03.wav", 16_000, np.zeros(1000, np.int16))
    with pytest.warns(InputWarning, match=r"2 of 4 sounds.*low/01.wav.*low/03.wav"):
        assert len(read_sounds(folder).dataset) == 2
    scipy.io.wavfile.write(folder / "low" / "01.wav", 16_000, np.zeros(100, np.int16))
    with pytest.warns(InputWarning, match=r"low/01.wav: the waveform has 100 .* Leave it out\.$"):
        read_sounds(folder)


@pytest.mark.parametrize(("kind", "patch"), [("images", ("--patch-size", "4")), ("audio", ())])
def test_the_command_fits_predicts_embeds_and_evaluates_a_folder(complete, kind, patch, tmp_path, capsys):
    write = write_pictures if kind == "images" else write_sounds
    folder, new, run = write(tmp_path / "train", 16), write(tmp_path / "new", 6, seed=1), tmp_path / "run"
    assert command("fit", folder, f"--{kind}", *patch, "--out", run, *SMALL, "--quiet") == 0
    assert Pipeline.load(run).preprocessor.patch_size == ((4, 4) if patch else (8, 128))
    metrics = json.loads((run / "metrics.json").read_text(encoding="utf-8"))
    assert metrics["reconstruction"]["methods"].keys() == {"model", "mean_of_visible_patches", "training_mean"}
    assert "accuracy" in metrics["classification"]["model"]
    assert "16 of 16" in metrics["reading"]["summary"]
    page = (run / "report.html").read_text(encoding="utf-8")
    assert "Hidden patches" in page and "patches hidden, and reconstruction" in page
    for file in (new / ("light" if kind == "images" else "low")).iterdir():
        truncated = file
    truncated.write_bytes(b"broken")
    assert command("predict", run, new, "--out", tmp_path / "answers.parquet", "--quiet") == 0
    answers = pq.read_table(tmp_path / "answers.parquet").to_pydict()
    assert len(answers["id"]) == 6 and answers["predicted"].count(None) == 1
    assert answers["id"][-1] == truncated.relative_to(new).as_posix() and answers["predicted"][-1] is None
    assert command("embed", run, new, "--out", tmp_path / "vectors.parquet", "--quiet") == 0
    assert pq.read_table(tmp_path / "vectors.parquet").shape == (6, 25)
    assert command("evaluate", run, new, "--out", tmp_path / "scores.json", "--quiet") == 0
    assert json.loads((tmp_path / "scores.json").read_text(encoding="utf-8"))["series"]["labelled"] == 5
    (new / ("dark" if kind == "images" else "high")).rename(new / "green")
    capsys.readouterr()
    assert command("evaluate", run, new, "--quiet") == 2
    assert "holds folders that are no classes, 'green'; to score the model" in capsys.readouterr().err


def test_the_command_refuses_options_of_tables_beside_a_folder(tmp_path, capsys):
    folder = write_pictures(tmp_path / "train", 4)
    for options, said in (
        (["--images", "--id", "star"], "the data are pictures; leave out --id."),
        (["--images", "--numbered", "", "--wide"], "the data are pictures; leave out --wide, --numbered."),
        (["--images", "--audio"], "--images and --audio are both given"),
        (["--images", "--label", "kind"], "the data are pictures; leave out --label."),
        (["--images", "--patch-size", "1", "2", "3"], "wanted 2 numbers"),
        (["--images", "--time-unit", "3", "--patch-size", "4"], "time_unit: pictures have no times"),
    ):
        assert command("fit", folder, *options, "--out", tmp_path / "run", "--quiet") == 2
        assert said in capsys.readouterr().err
    assert not (tmp_path / "run").exists()


def test_names_that_are_no_utf8_numbers_that_are_none_and_folders_that_cannot_be_read(tmp_path, monkeypatch):
    folder = write_pictures(tmp_path / "pictures")
    (folder / "dark" / "02.png").rename(folder / os.fsdecode(b"dark/caf\xe9.png"))
    Image.fromarray(np.full((8, 8), np.nan, np.float32)).save(folder / "dark" / "nan.tif")
    Image.new("RGB", (9, 1000)).save(folder / "dark" / "thin.png")
    with pytest.warns(InputWarning, match="dark/nan.tif.*it holds NaN") as raised:
        found = read_pictures(folder, 4, longest_side=20)
    assert "dark/caf\\xe9.png" in found.dataset.ids.tolist() and "dark/thin.png" in str(raised[0].message)
    assert [name.encode() for name in found.dataset.ids]
    (folder / "dark" / "nan.tif").unlink()
    with pytest.warns(InputWarning, match="thin.png: 20×1 is smaller"):
        read_pictures(folder, 4, longest_side=20)
    walk = os.walk

    def forbidden(top, onerror, followlinks):
        onerror(PermissionError(13, "Permission denied", str(folder / "light")))
        return walk(top)

    monkeypatch.setattr(os, "walk", forbidden)
    with pytest.raises(PermissionError):
        read_pictures(folder, 4)


def test_a_sound_that_is_left_out_does_not_decide_the_sample_rate(tmp_path):
    folder = write_sounds(tmp_path)
    scipy.io.wavfile.write(folder / "high" / "0.wav", 8000, np.zeros(80, np.int16))
    with pytest.warns(InputWarning, match="high/0.wav"):
        assert read_sounds(folder).dataset.sample_rate == 16_000


def test_options_that_would_have_no_effect_are_refused(tmp_path, capsys):
    folder, run = write_pictures(tmp_path / "pictures"), tmp_path / "run"
    assert command("fit", folder, "--images", "--patch-size", "4", *SMALL, "--out", run) == 0
    capsys.readouterr()
    again = ["fit", folder, "--images", "--pretrained", run, *SHORT, "--out", tmp_path / "again"]
    of_series = (
        ["interpolate"], ["interpolate", "--at", folder], ["anomalies"], ["explain"], ["predict", "--anomaly-score"],
        ["evaluate", "--horizon", "3"],
    )  # fmt: skip
    for words, part in (
        *(
            ([name, run, folder, *how, "--out", tmp_path / "no.csv"], "trained on pictures, and this needs one trained")
            for name, *how in of_series
        ),
        (["export", run, "--out", tmp_path / "no.onnx"], "trained on pictures, and this needs one trained on series"),
        (["evaluate", run, folder, "--at", "3"], "--at is for series, and pictures have no times; leave it out"),
        (
            ["predict", run, folder, "--out", tmp_path / "p.csv", "--id", "x"],
            "the model was trained on pictures; leave out the options of tables: --id.",
        ),
        (["evaluate", run, folder, "--label-id", "x"], "are the folders that hold them; leave out --label-id."),
        ([*again, "--patch-size", "8"], "patch_size is (8, 8), and the model was trained with (4, 4)"),
        ([*again, "--longest-side", "20"], "longest_side is 20, and the model was trained with 224"),
        (
            ["fit", folder, "--audio", "--longest-side", "20", "--out", tmp_path / "x"],
            "the data are sounds; leave out --longest-side.",
        ),
    ):
        assert command(*words) == 2, words
        said = capsys.readouterr().err
        assert part in " ".join(said.replace("│", " ").split())
        assert "Traceback" not in said and said.count("rotarymae:") <= 1


def test_one_class_alone_is_refused(tmp_path, capsys):
    folder = write_pictures(tmp_path / "pictures")
    (folder / "dark").rename(folder / "light" / "dark")
    assert command("fit", folder, "--images", "--patch-size", "4", *SMALL, "--out", tmp_path / "run") == 2
    assert "every label is 'light'" in " ".join(capsys.readouterr().err.split())
    assert not (tmp_path / "run").exists()


def test_a_single_file_is_read(tmp_path):
    write_pictures(tmp_path / "pictures")
    write_sounds(tmp_path / "sounds")
    found = read_pictures(tmp_path / "pictures" / "dark" / "02.png", 4)
    assert found.dataset.ids.tolist() == ["02.png"] and found.labels is None
    assert read_sounds(tmp_path / "sounds" / "low" / "01.wav").dataset.ids.tolist() == ["01.wav"]
    with refuses("gone.wav", "is no folder", "sounds"):
        read_sounds(tmp_path / "sounds" / "low" / "gone.wav")
