"""rotarymae demo: the main job on real light curves."""

from __future__ import annotations

from pathlib import Path

from rotarymae import report, tasks
from rotarymae.cli.inputs import Quiet
from rotarymae.cli.output import describe, new_reporter, print_end, print_metrics, typed_command


def demo(
    out: Path | None = None,
    seed: int = 0,
    quick: bool = False,
    quiet: Quiet = False,
) -> None:
    """Pre-train, classify, interpolate and embed real light curves (PLAsTiCC), and write a report.

    Args:
        out: The results go to this folder; without it, to runs/demo, or runs/demo-2 and so on if that exists.
        seed: This number fixes the split, the order, the masks, the augmentation and the first weights.
        quick: Train for an epoch or two only, to see that everything runs.
    """
    from rotarymae.data import plasticc
    from rotarymae.recipes.demo import configure

    reporter = new_reporter(quiet)
    folder = out or _free(Path("runs/demo"))
    tasks.check_folder(folder, resume=False)
    page = folder / "report.html"
    dataset, labels = plasticc.sample()
    reporter.say(f"{describe(dataset)}, {len(set(labels.tolist()))} classes → {folder}")
    with reporter.catching_warnings():
        outcome = tasks.run_fit(
            dataset,
            labels,
            configure(seed, quick),
            folder,
            task="classification",
            command=typed_command(),
            reporter=reporter,
            report=lambda outcome: report.write_report(
                outcome,
                page,
                title="Light curves of PLAsTiCC",
                summary=(
                    f"A Rotary Masked Autoencoder pre-trained on {len(outcome.split.train):,} light curves by hiding "
                    "observations and predicting them, then fine-tuned to tell 14 kinds of object apart. All figures "
                    f"are on {len(outcome.split.test)} objects that neither training saw."
                ),
                class_names=dict(plasticc.CLASSES),
                time_label="MJD (days)",
                value_label="flux",
                notes=(
                    "The sample has more of the rare classes than the full set, so its figures are not comparable "
                    "with published ones.",
                    "Data: PLAsTiCC team and collaborators, CC BY 4.0, DOI 10.5281/zenodo.2539456.",
                ),
            ),
        )
    print_metrics(outcome.metrics, reporter)
    print_end(outcome.seconds, page, reporter)


def _free(folder: Path) -> Path:
    """The folder, or the first of folder-2, folder-3, .. that does not exist."""
    number, candidate = 2, folder
    while candidate.exists():
        number, candidate = number + 1, folder.with_name(f"{folder.name}-{number}")
    return candidate
