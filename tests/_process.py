"""What one process of a training on several does; see test_processes.py.

torchrun --nproc-per-node 3 tests/_process.py OUT JOB [RESUME]
"""

import json
import os
import shutil
import sys
import time
from pathlib import Path

import torch

from _runs import digest, examples, objective, settings
from rotarymae.errors import InputError
from rotarymae.labels import ClassLabels
from rotarymae.pipeline import Pipeline
from rotarymae.prediction import embed
from rotarymae.training import evaluation
from rotarymae.training import loop as training


def train(out: Path, resume: str) -> dict:
    """20 steps of a batch of 13, which no number of ranks divides, and what is made of the model."""
    what = objective(dropout=0.0, drop_path=0.0)
    held = examples(count=11, of=1)
    order: list = []
    data = examples(count=101)
    inner = data.batch

    def batch(index, epoch):
        order.append((epoch, index.tolist()))
        return inner(index, epoch)

    data.batch = batch
    many = {"epochs": 3, "batch_size": 13, "checkpoint_steps": 5}
    # Neither clipping nor Adam, which would hide a gradient of another size.
    many |= {"optimizer": "sgd", "gradient_clip": None, "base_lr": 0.01}

    def keep(step: int, steps: int, loss: float) -> None:
        if step == 12 and resume == "never":
            shutil.copy(out / "run" / "checkpoint.safetensors", out / "after-10.safetensors")

    how = {"validation": held, "folder": out / "run", "resume": resume, "on_step": keep}
    result = training.fit(what, data, settings(**many), **how)
    order.sort(key=str)
    return {"history": result.history, "tokens": result.tokens, "order": order}


def answer(out: Path, resume: str) -> dict:
    """Metrics, predictions and embeddings of one classifier for 101 series."""
    what = objective("classify")
    what.eval()
    data, config = examples("classify", 101, augment=False), settings(batch_size=None, batch_tokens=40)
    loss = evaluation.evaluate(what, data, config)
    assert not what.training
    directory = Pipeline(data.preprocessor, what.model, labels=ClassLabels(("a", "b", "c")))
    probabilities = directory.outputs(data.dataset)
    vectors = embed(directory, data.dataset)
    few = evaluation.predict(what.model, examples("classify", 2), lambda model, batch: batch.series.tolist(), config)
    correct = float((probabilities.argmax(1) == data.targets.numpy()).mean())
    return {"loss": loss, "p": probabilities.tolist(), "v": vectors.tolist(), "few": few, "accuracy": correct}


def poisoned(out: Path, resume: str) -> dict:
    """One bad series, which only one rank sees."""
    from _runs import Poisoned

    what = objective(dropout=0.0, drop_path=0.0)
    data = Poisoned(examples(), {17})
    result = training.fit(what, data, settings(epochs=2), folder=out / "run")
    return {"history": result.history, "bits": digest(what.model)}


def refused(out: Path, resume: str) -> dict:
    """The folder has a run already: every rank must say so."""
    (out / "run").mkdir(parents=True, exist_ok=True)
    (out / "run" / "log.jsonl").touch()
    try:
        training.fit(objective(), examples(), settings(epochs=1), folder=out / "run")
    except InputError as error:
        return {"said": str(error)}
    return {}


def long(out: Path, resume: str) -> dict:
    """Goes on until killed; says which process is which. With "auto" it is 40 steps in all."""
    what = objective(dropout=0.0, drop_path=0.0)
    (out / f"pid-{os.environ['RANK']}").write_text(str(os.getpid()))

    def slow(step: int, steps: int, loss: float) -> None:
        time.sleep(0.0 if resume == "auto" else 0.1)

    many = {"epochs": 10, "checkpoint_steps": 2}
    result = training.fit(what, examples(), settings(**many), folder=out / "run", resume=resume, on_step=slow)
    return {"history": result.history}


if __name__ == "__main__":
    torch.set_num_threads(1)
    folder = Path(sys.argv[1])
    found = globals()[sys.argv[2]](folder, sys.argv[3] if len(sys.argv) > 3 else "never")
    rank = os.environ.get("RANK", "0")
    (folder / f"{sys.argv[2]}-{rank}.json").write_text(json.dumps(found))
