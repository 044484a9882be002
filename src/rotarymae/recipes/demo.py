"""The main job on real light curves: PLAsTiCC, 1,400 objects of 14 classes in six bands (CC BY 4.0).

`rotarymae demo` (or `make demo`): pre-trains on masked observations, fine-tunes to classify, scores on a quarter of
the objects that neither saw, interpolates hidden observations, embeds, and writes a report.
"""

from __future__ import annotations

from rotarymae.masking import Masking
from rotarymae.tasks import Settings
from rotarymae.training import TrainConfig


def settings(seed: int = 0, quick: bool = False) -> Settings:
    """The demo's; `quick` trains for an epoch or two, to see that everything runs."""
    # Sized for six minutes on two cores: encoder and decoder together hold a million parameters. Rather more passes of
    # fine-tuning than of pre-training: on 900 objects the labels are what is scarce.
    return Settings(
        size="tiny-shallow",
        embed_dim=120,
        num_heads=2,
        depth=4,
        decoder_embed_dim=120,
        decoder_num_heads=2,
        masking=Masking("ratio", (0.3, 0.8)),
        pretrain=TrainConfig(epochs=1 if quick else 12, batch_size=32, base_lr=1e-3, keep_best=True, seed=seed),
        finetune=TrainConfig(
            epochs=2 if quick else 40, batch_size=32, base_lr=1e-3, betas=(0.9, 0.999), keep_best=True, seed=seed
        ),
        # Pre-training gives [CLS] no task of its own; on few labels the mean of the tokens is the better start.
        pool="mean",
        drop=0.5,
        noise=0.05,
    )
