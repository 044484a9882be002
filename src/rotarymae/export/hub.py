"""Puts models on the Hugging Face Hub; `checkpoints.find_model` gets them from there.

The Hub's own mixin does not fit: it sets attributes before `__init__`, which scikit-learn forbids estimators, and
writes a config.json of its own.
"""

from __future__ import annotations

from pathlib import Path

from rotarymae.checkpoints import PUBLISHED, find_model
from rotarymae.errors import InputError, import_extra


def push_folder(folder: str | Path, repository: str, private: bool = False, token: str | None = None) -> str:
    """Uploads a model directory or a run folder of `rotarymae fit`; of these only models, predictor and cards.

    As the estimators' `push_to_hub`.

    Raises:
        InputError: a folder without a model.
        MissingExtra: without the extra `hub`.
    """
    folder = find_model(folder)
    if not any((folder / part / "config.json").is_file() for part in ("", "pretrained", "finetuned")):
        raise InputError(f"{folder} holds no model; give what `rotarymae fit` or an estimator's `save` wrote.")
    hub = import_extra("huggingface_hub", "hub").HfApi(token=token, library_name="rotarymae")
    hub.create_repo(repository, private=private, exist_ok=True)
    uploaded = hub.upload_folder(
        repo_id=repository, folder_path=folder, allow_patterns=list(PUBLISHED), commit_message="Model of rotarymae"
    )
    return str(uploaded.commit_url)
