"""The main job on real light curves: PLAsTiCC, 1,400 objects of 14 classes in six bands (CC BY 4.0).

`rotarymae demo` (or `make demo`): pre-trains on masked observations, fine-tunes to classify, scores on a quarter of
the objects that neither saw, interpolates hidden observations, embeds, and writes a report.
"""

from __future__ import annotations

from rotarymae.tasks import FitConfig


def configure(seed: int = 0, quick: bool = False) -> FitConfig:
    """The demo's fit; `quick` trains for an epoch or two, to see that everything runs."""
    # Sized for six minutes on two cores: encoder and decoder together hold a million parameters. Rather more passes of
    # fine-tuning than of pre-training: on 900 objects the labels are what is scarce.
    return FitConfig(
        size="tiny-shallow",
        embed_dim=120,
        num_heads=2,
        depth=4,
        decoder_embed_dim=120,
        decoder_num_heads=2,
        pretrain_epochs=1 if quick else 12,
        finetune_epochs=2 if quick else 40,
        min_steps=0,
        # Pre-training gives [CLS] no task of its own; on few labels the mean of the tokens is the better start.
        pool="mean",
        drop=0.5,
        noise=0.05,
        seed=seed,
    )
