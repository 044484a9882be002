"""Models come from the Hugging Face Hub, which is a small server on this machine."""

import hashlib
import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import ClassVar

import numpy as np
import pytest

from conftest import refuses
from rotarymae import RoMAEClassifier, RoMAEEmbedder
from rotarymae.model_files import find_model

constants = pytest.importorskip("huggingface_hub.constants")
SMALL = {"embed_dim": 12, "num_heads": 1, "depth": 1, "decoder_embed_dim": 12, "decoder_num_heads": 1}
SMALL |= {"decoder_depth": 1, "pretrain_epochs": 1, "min_steps": 0}
BOTH = {**SMALL, "finetune_epochs": 1, "predictor": "model"}
TABLE = np.random.default_rng(0).normal(size=(20, 8))
KINDS = ["x", "y"] * 10
COMMIT = "a" * 40


class Hub(BaseHTTPRequestHandler):
    """The calls that a download makes."""

    files: ClassVar[dict] = {}

    def do_HEAD(self):
        self.do_GET()

    def do_GET(self):
        name = self.path.rpartition(f"/resolve/{COMMIT}/")[2]
        if "/owner/name" not in self.path:
            self.answer({"error": "Repository not found"}, 404, {"X-Error-Code": "RepoNotFound"})
        elif self.path.startswith(f"/api/models/owner/name/tree/{COMMIT}"):
            files = [(path, hashlib.sha1(content).hexdigest(), len(content)) for path, content in self.files.items()]
            self.answer([{"type": "file", "path": path, "oid": oid, "size": size} for path, oid, size in files])
        elif self.path.startswith("/api/models/owner/name"):
            siblings = [{"rfilename": path} for path in self.files]
            self.answer({"id": "owner/name", "sha": COMMIT, "siblings": siblings, "private": False})
        elif name in self.files:
            content = self.files[name]
            etag = hashlib.sha1(content).hexdigest()
            self.answer(content, 200, {"ETag": f'"{etag}"', "X-Repo-Commit": COMMIT})
        else:
            self.send_error(404)

    def answer(self, content, status=200, headers=()):
        content = content if isinstance(content, bytes) else json.dumps(content).encode()
        self.send_response(status)
        for name, value in {"Content-Length": str(len(content)), **dict(headers)}.items():
            self.send_header(name, value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(content)

    def log_message(self, *_):
        """Nothing on the terminal."""


@pytest.fixture
def endpoint(tmp_path, monkeypatch):
    """The address of a Hub without models, and of an empty cache."""
    monkeypatch.setattr(Hub, "files", {})
    server = ThreadingHTTPServer(("127.0.0.1", 0), Hub)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    address = f"http://127.0.0.1:{server.server_port}"
    monkeypatch.setattr(constants, "ENDPOINT", address)
    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(constants, "HF_HUB_DISABLE_PROGRESS_BARS", True)
    addresses = address + "/{repo_id}/resolve/{revision}/{filename}"
    monkeypatch.setattr(constants, "HUGGINGFACE_CO_URL_TEMPLATE", addresses)
    yield server
    server.shutdown()
    server.server_close()


def test_a_model_comes_from_the_hub(endpoint, tmp_path):
    model = RoMAEClassifier(**BOTH).fit(TABLE, KINDS)
    model.save(tmp_path / "model", license="cc-by-4.0")
    saved = [path for path in (tmp_path / "model").rglob("*") if path.is_file()]
    Hub.files |= {path.relative_to(tmp_path / "model").as_posix(): path.read_bytes() for path in saved}
    card = Hub.files["README.md"].decode()
    parts = ("library_name: rotarymae", "license: cc-by-4.0", "irregular-time-series]", "licence cc-by-4.0")
    assert [part for part in parts if part not in card] == []
    Hub.files["code.py"] = b"print('never fetched')"
    loaded = RoMAEClassifier.from_pretrained("owner/name")
    assert np.array_equal(loaded.predict_proba(TABLE[:, None]), model.predict_proba(TABLE))
    assert not list((tmp_path / "cache").rglob("code.py"))
    vectors = RoMAEEmbedder.from_pretrained("owner/name").transform(TABLE[:, None])
    tuned = RoMAEEmbedder(pretrained="owner/name").fit(TABLE)
    assert np.array_equal(tuned.transform(TABLE), vectors)
    # What is in the cache is there without the Hub.
    endpoint.shutdown()
    endpoint.server_close()
    assert np.array_equal(RoMAEClassifier.from_pretrained("owner/name").predict(TABLE[:, None]), model.predict(TABLE))


def test_local_folders_are_no_names_on_the_hub(endpoint, tmp_path, monkeypatch):
    model = RoMAEEmbedder(**SMALL).fit(TABLE)
    model.save_pretrained(tmp_path / "own" / "model", license="mit")
    monkeypatch.chdir(tmp_path)
    assert find_model("own/model").samefile(tmp_path / "own" / "model") and not Hub.files
    same = RoMAEEmbedder.from_pretrained("own/model").transform(TABLE[:, None])
    assert np.array_equal(same, model.transform(TABLE))
    with refuses("'nobody/nothing'", "Hugging Face Hub"):
        RoMAEEmbedder.from_pretrained("nobody/nothing")
    with monkeypatch.context() as patch, refuses("'nobody/nothing'", "Hugging Face Hub", "TimeoutError"):
        patch.setattr("huggingface_hub.snapshot_download", lambda *_, **__: (_ for _ in ()).throw(TimeoutError()))
        find_model("nobody/nothing")
    with refuses("'a b'", "no licence"):
        model.save(tmp_path / "other", license="a b")
