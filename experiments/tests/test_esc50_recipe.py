"""The spectrograms that the recipe makes comparable, and what a fold's test clips may touch."""

import dataclasses

import numpy as np
import pytest

import _esc50
from rotarymae.arrays import ArrayDataset
from rotarymae.system import Reporter
from rotarymae_experiments import pretrain_arrays
from rotarymae_experiments.recipes import esc50
from rotarymae_experiments.runner import Trial

UNSURE = np.full((6, 3), 1 / 3)


def sounds(frames=(40, 33), rate=44_100):
    draw = np.random.default_rng(0)
    arrays = tuple(draw.normal(-8, 3, (n, 128, 1)).astype(np.float32) for n in frames)
    return ArrayDataset(arrays, (16, 16), np.arange(len(frames)), rate)


def test_neighbouring_frames_are_averaged():
    given = sounds((80, 71))
    found = esc50.average(given, 4)
    assert [len(array) for array in found.arrays] == [20, 17]
    assert np.allclose(found.arrays[1][7], given.arrays[1][28:32].mean(0), atol=1e-5)
    assert esc50.average(given, 1) is given


def test_loudness_is_taken_out_and_decibels_are_decibels():
    given = sounds()
    louder = dataclasses.replace(given, arrays=tuple(array + 5 for array in given.arrays))
    for one, other in zip(esc50.below_loudest(given).arrays, esc50.below_loudest(louder).arrays, strict=True):
        assert np.allclose(one, other, atol=1e-4) and one.max() == 0 and one.min() >= -80
    # Natural logarithms of energy: a factor of 10 is 10 dB, in pictures they stand already.
    natural, decibels = sounds(), dataclasses.replace(sounds(), sample_rate=None)
    tenth = np.full((16, 128, 1), -np.log(10), np.float32)
    tenth[0, 0] = 0
    assert np.isclose(esc50.below_loudest(dataclasses.replace(natural, arrays=(tenth, tenth))).arrays[0].min(), -10)
    assert np.isclose(
        esc50.below_loudest(dataclasses.replace(decibels, arrays=(tenth, tenth))).arrays[0].min(), -2.3026
    )


def test_bins_are_standardised_by_the_other_set():
    given = sounds((400, 300))
    tilted = dataclasses.replace(given, arrays=tuple(a * 2 + np.arange(128)[:, None] for a in given.arrays))
    one, other = esc50.by_bin(given, given), esc50.by_bin(tilted, tilted)
    assert np.allclose(one.arrays[0], other.arrays[0], atol=1e-3)
    frames = np.concatenate(one.arrays)
    assert np.allclose(frames.mean(0), 0, atol=1e-4) and np.allclose(frames.std(0), 1, atol=1e-4)


def changed(window=50, mixed=0.0, seeds=(7, 8), **strength):
    setup = dataclasses.replace(esc50.RECIPE.configure("small", "ours"), **{"stretched": 0.0, "shifted": 0, **strength})
    return esc50.augmentation(setup, window, mixed)(sounds().arrays, np.array(seeds))


def test_a_window_begins_anywhere_and_a_clip_s_beginning_follows_its_end():
    for array, window, same, other in zip(sounds().arrays, changed(), changed(), changed(seeds=(9, 10)), strict=True):
        assert window.shape == (50, 128, 1) and np.array_equal(window, same) and not np.array_equal(window, other)
        start = np.flatnonzero((window[0] == array).all((1, 2)))[0]
        assert np.array_equal(window, np.concatenate([array, array, array])[start : start + 50])


def places(parts, whole):
    """Which part of `whole`, along the first axis, each of `parts` is."""
    return np.array([np.flatnonzero((part == whole).all(tuple(range(1, whole.ndim))))[0] for part in parts])


def test_clips_change_in_tempo_and_pitch():
    clips = sounds().arrays
    for array, plain, slow in zip(clips, changed(), changed(stretched=0.4), strict=True):
        steps, changed_steps = (np.diff(places(frames, array)) % len(array) for frames in (plain, slow))
        assert (steps == 1).all() and np.abs(np.log(changed_steps.mean())) > 0.02
    bins = [places(moved[:, 30:90].swapaxes(0, 1), plain.swapaxes(0, 1)) - np.arange(30, 90)
            for plain, moved in zip(changed(), changed(shifted=6), strict=True)]  # fmt: skip
    assert all(np.ptp(shift) == 0 and abs(shift[0]) <= 6 for shift in bins) and any(shift[0] for shift in bins)


def test_the_louder_of_two_mixed_sounds_is_kept():
    for clip, mixed in zip(changed(seeds=range(2)), changed(seeds=range(2), mixed=1.0), strict=True):
        assert (mixed >= clip).all()
    seeds = range(100, 102)  # the second clip has the first one under it
    clips, both = changed(seeds=seeds), changed(seeds=seeds, mixed=1.0)
    louder = [(one > clip).mean() for one, clip in zip(both, clips, strict=True)]
    assert 0 < max(louder) < 0.9


def test_pictures_become_the_energies_that_sounds_have():
    natural = sounds((40,), 44_100)
    decibels = dataclasses.replace(
        natural, arrays=tuple(array[::2] * np.float32(10 / np.log(10)) for array in natural.arrays), sample_rate=None
    )
    found = esc50.as_energies(decibels)
    assert found.sample_rate is not None and esc50.as_energies(natural) is natural
    for i in (0, 1):
        np.testing.assert_allclose(found.arrays[0][i::2], natural.arrays[0][::2], rtol=1e-6)


def test_the_simple_method_reads_mean_and_deviation_of_each_bin():
    given = sounds()
    features = esc50.mel_statistics(given)
    assert features.shape == (2, 256)
    assert np.isclose(features[1, 3], given.arrays[1][:, 3].mean(), atol=1e-4)
    assert np.isclose(features[1, 131], given.arrays[1][:, 3].std(), atol=1e-4)


@pytest.mark.parametrize("case", [esc50.ESC10, esc50.PICTURES])
def test_no_training_sees_the_clips_that_are_scored(tmp_path, monkeypatch, case):
    pytest.importorskip("soundfile")
    pytest.importorskip("kaldi_native_fbank")
    folder, seen = _esc50.write(tmp_path / "data"), []

    def spy_pretrain(setup, trial, arrays, preprocessor, *args, **more):
        seen.append(arrays.ids)
        return pretrain_arrays(setup, trial, arrays, preprocessor, *args, **more)

    def spy_finetune(setup, trial, model, train, *args):
        seen.append(train.arrays.ids)
        raise StopIteration

    monkeypatch.setattr(esc50, "pretrain_arrays", spy_pretrain)
    monkeypatch.setattr(esc50, "finetune_both", spy_finetune)
    setup = esc50.RECIPE.configure("smoke", "ours")
    setup = dataclasses.replace(
        setup, data_dir=str(folder), pretraining=dataclasses.replace(setup.pretraining, epochs=1)
    )
    trial = Trial(2, tmp_path / "run" / "seed-2", Reporter(quiet=True), smoke=True)
    trial.folder.mkdir(parents=True)
    with pytest.raises(StopIteration):
        esc50.run(setup, case, trial)
    pretrained, tuned = seen
    fold = 5 if case == esc50.PICTURES else 2
    assert not [name for name in tuned if name.startswith(f"{fold}-")]
    assert pretrained.tolist() == tuned.tolist()
    assert len(tuned) == (36 if case == esc50.PICTURES else 24)
