"""How a class is decided from probabilities: by shares, by costs, and by the best F1."""

import numpy as np
import pytest
from sklearn.metrics import balanced_accuracy_score, f1_score

from conftest import refuses
from rotarymae import RoMAEClassifier, SeriesDataset
from rotarymae.labels import ClassLabels
from rotarymae.partners.decide import decide, decision_weights
from rotarymae.train import finetune
from rotarymae.training.fit_config import FitConfig


def rare(series=4000, share=0.05, seed=0):
    """True classes, of which the second is rare, and the probabilities of a method that knows something of them."""
    draw = np.random.default_rng(seed)
    truth = (draw.random(series) < share).astype(int)
    odds = share / (1 - share) * np.exp(2.0 * (draw.normal(size=series) + 2.0 * truth) - 2.0)  # the true ones
    second = odds / (1 + odds)
    return truth, np.stack([1 - second, second], 1)


def test_each_way_is_best_at_what_it_is_named_for():
    truth, probabilities = rare()
    counts, (new_truth, new_probabilities) = np.bincount(truth), rare(seed=1)
    scores = {}
    for by in ("accuracy", "f1", "balanced"):
        weights = decision_weights(by, counts, probabilities)
        decided = decide(new_probabilities, weights)
        scores[by] = (
            (decided == new_truth).mean(),
            f1_score(new_truth, decided),
            balanced_accuracy_score(new_truth, decided),
        )
    best = [max(scores, key=lambda by, i=i: scores[by][i]) for i in range(3)]
    assert best == ["accuracy", "f1", "balanced"]
    assert scores["f1"][1] > scores["accuracy"][1] + 0.02 and scores["balanced"][2] > scores["f1"][2] + 0.02


@pytest.mark.parametrize("shift", [-1.0, 0.0, 3.0])
def test_a_few_validation_series_find_the_threshold_of_the_best_f1(shift):
    """Also where the method thinks the rare class e^shift times as likely, as one with balanced class weights does."""
    reached, best = [], []
    new_truth, new = rare(8000, seed=99)
    new = new * np.exp([0.0, shift]) / (new * np.exp([0.0, shift])).sum(1, keepdims=True)
    for seed in range(10):
        _, few = rare(365, seed=seed)
        few = few * np.exp([0.0, shift]) / (few * np.exp([0.0, shift])).sum(1, keepdims=True)
        reached.append(f1_score(new_truth, decide(new, decision_weights("f1", np.array([1900, 100]), few))))
        best.append(max(f1_score(new_truth, new[:, 1] > t) for t in np.quantile(new[:, 1], np.linspace(0.9, 0.98, 9))))
    assert np.mean(reached) > np.mean(best) - 0.015


def test_a_rare_class_of_two_is_sought_by_default():
    _, probabilities = rare()
    for counts, by in (((190, 10), "f1"), ((150, 50), "accuracy"), ((190, 5, 5), "accuracy")):
        some = probabilities if len(counts) == 2 else np.full((4, 3), 1 / 3)
        assert decision_weights("auto", np.array(counts), some) == decision_weights(by, np.array(counts), some)


def test_costs_decide_by_the_expected_cost():
    probabilities = np.array([[0.8, 0.2], [0.95, 0.05]])
    weights = decision_weights("cost", np.array([5, 5]), probabilities, costs=(1, 10))
    assert decide(probabilities, weights).tolist() == [1, 0]  # 0.8 · 1 < 0.2 · 10, but 0.95 · 1 > 0.05 · 10
    assert decide(probabilities).tolist() == [0, 0]


def test_the_most_probable_class_is_taken_where_nothing_can_choose():
    nobody = np.zeros((0, 3))
    assert decision_weights("f1", np.array([5, 2, 1]), nobody) == ()
    assert decision_weights("accuracy", np.array([5, 2]), rare()[1]) == ()
    assert decision_weights("balanced", np.array([6, 2]), nobody) == pytest.approx((4 / 3, 4))


def test_many_classes_are_decided_by_their_mean_f1():
    draw = np.random.default_rng(0)
    share = np.array([0.9, 0.07, 0.03])
    truth = draw.choice(3, 3000, p=share)
    likelihood = np.exp(draw.normal(size=(3000, 3)) + 2.5 * np.eye(3)[truth])
    probabilities = likelihood * share / (likelihood * share).sum(1, keepdims=True)
    weights = decision_weights("f1", np.bincount(truth), probabilities)
    plain, decided = (f1_score(truth, decide(probabilities, w), average="macro") for w in ((), weights))
    assert decided > plain + 0.01 and weights[0] < weights[1] < weights[2]


def test_a_fitted_classifier_decides_as_it_was_asked_to(tmp_path):
    draw = np.random.default_rng(0)
    labels = np.where(np.arange(40) % 8 == 0, "rare", "common")
    times = np.tile(np.arange(12.0), (40, 1))
    values = draw.normal(size=(40, 12)) + 0.3 * (labels == "rare")[:, None]
    data = SeriesDataset.from_arrays(list(times), list(values))
    tiny = {"size": "light", "depth": 1, "pretrain_epochs": 1, "finetune_epochs": 1, "min_steps": 0}
    model = RoMAEClassifier(**tiny, decide="cost", costs=(1.0, 99.0), predictor="model").fit(data, labels)
    probabilities = model.predict_proba(data)
    expected = np.array(["common", "rare"])[(probabilities * [1, 99]).argmax(1)]
    assert (model.predict(data) == expected).all() and (expected == "rare").sum() > (probabilities.argmax(1) == 1).sum()
    model.save(tmp_path / "model")
    assert (RoMAEClassifier.load(tmp_path / "model").predict(data) == expected).all()
    with refuses("costs", "2"):
        RoMAEClassifier(**tiny, decide="cost", costs=(1.0,)).fit(data, labels)
    with refuses("decide"):
        finetune(model.pipeline_.pretrained, data, values[:, 0], FitConfig(decide="f1"), task="regression")


@pytest.mark.parametrize("costs", [(), (1.0,), (1.0, -1.0), (1.0, np.nan)])
def test_costs_are_one_positive_number_for_each_class(costs):
    with refuses("costs"):
        ClassLabels.check_config(FitConfig(decide="cost", costs=costs), np.array([0, 1]))


def test_costs_and_names_without_effect_are_refused():
    with refuses("costs", "f1"):
        ClassLabels.check_config(FitConfig(decide="f1", costs=(1.0, 2.0)), np.array([0, 1]))
    with refuses("decide"):
        FitConfig(decide="luck")
