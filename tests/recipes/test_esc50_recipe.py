"""The spectrograms that the recipe makes comparable, and what a fold's test clips may touch."""

import dataclasses

import numpy as np
import pytest

import _esc50
from rotarymae.arrays import ArrayDataset
from rotarymae.experiments import pretrain_arrays
from rotarymae.experiments.runner import Trial
from rotarymae.recipes import esc50
from rotarymae.system import Reporter


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


def test_a_clip_is_turned_and_nothing_is_lost():
    given = sounds().arrays
    once, again = (esc50.turn(given, np.array([7, 8])) for _ in range(2))
    for array, turned, same in zip(given, once, again, strict=True):
        assert np.array_equal(turned, same) and not np.array_equal(turned, array)
        start = np.flatnonzero((turned == array[0]).all((1, 2)))[0]
        assert np.array_equal(np.roll(turned, -start, 0), array)


def test_the_simple_method_reads_mean_and_deviation_of_each_bin():
    given = sounds()
    features = esc50.mel_statistics(given)
    assert features.shape == (2, 256)
    assert np.isclose(features[1, 3], given.arrays[1][:, 3].mean(), atol=1e-4)
    assert np.isclose(features[1, 131], given.arrays[1][:, 3].std(), atol=1e-4)


@pytest.mark.parametrize("case", [esc50.ESC10, esc50.OTHERS, esc50.PICTURES])
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
    setup = esc50.setup("smoke", "ours")
    setup = dataclasses.replace(
        setup, data_dir=str(folder), pretraining=dataclasses.replace(setup.pretraining, epochs=1)
    )
    trial = Trial(2, tmp_path / "run" / "seed-2", tmp_path, Reporter(quiet=True), smoke=True)
    trial.folder.mkdir(parents=True)
    with pytest.raises(StopIteration):
        esc50.run(setup, case, trial)
    pretrained, tuned = seen
    fold = 5 if case == esc50.PICTURES else 2
    assert not [name for name in tuned if name.startswith(f"{fold}-")]
    if case == esc50.OTHERS:  # clips of other classes, in every fold
        targets = {int(name.rpartition("-")[2].partition(".")[0]) for name in pretrained}
        assert targets and not targets & set(esc50.TEN)
    else:
        assert pretrained.tolist() == tuned.tolist()
    assert len(tuned) == (36 if case == esc50.PICTURES else 24)
