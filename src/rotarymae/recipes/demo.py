"""The main job on real light curves: PLAsTiCC, 1,400 objects of 14 classes in six bands (CC BY 4.0).

`rotarymae demo` (or `make demo`): pre-trains on masked observations, fine-tunes to classify, scores on a quarter of
the objects that neither saw, interpolates hidden observations, embeds, and writes a report.
"""

from __future__ import annotations

from rotarymae.tasks import FitConfig


def configure(seed: int = 0, quick: bool = False) -> FitConfig:
    """The demo's fit; `quick` trains for an epoch or two, to see that everything runs."""
    # Rather more passes than the defaults: on 900 objects the labels are what is scarce. Six minutes on two cores.
    return FitConfig(
        pretrain_epochs=1 if quick else 12,
        finetune_epochs=2 if quick else 40,
        min_steps=0,
        seed=seed,
    )
