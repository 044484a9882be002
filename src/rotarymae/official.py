"""Reads a checkpoint directory of the published RoMAE code (github.com/Chromeilion/RoMAE, commit 480cfaf, MIT).

Names, layouts and the facts that differ are translated once, here; everything else sees our model.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, Literal

import torch
from torch import Tensor

from rotarymae.config import RoMAEConfig
from rotarymae.errors import ModelDirectoryError
from rotarymae.heads import Classifier
from rotarymae.model import Encoder, MaskedAutoencoder
from rotarymae.model_files import fill_model, read_json, read_tensors

BLOCK_TENSORS = {
    "attention_norm.weight": "attention_norm.weight",
    "attention.wq.weight": "attention.query.weight",
    "attention.wk.weight": "attention.key.weight",
    "attention.wv.weight": "attention.value.weight",
    "attention.wo.weight": "attention.output.weight",
    "ffn_norm.weight": "mlp_norm.weight",
    "feed_forward.w1.weight": "mlp.up.weight",
    "feed_forward.w2.weight": "mlp.down.weight",
}
# Constants that the published model stores next to its weights: frequencies and a buffer that holds a zero.
STORED_CONSTANTS = ("zeros", "attn_pos_embedding.timescale")  # ends of their names


def load(folder: str | Path) -> MaskedAutoencoder | Classifier:
    """Load a checkpoint directory of the published RoMAE code.

    A checkpoint with a decoder becomes a MaskedAutoencoder. One without a decoder, with `dim_output` in its settings,
    becomes a Classifier; it reads [CLS] if the model has one, else the mean over tokens. The model is on the CPU, in
    float32 and in evaluation mode. Rows of query and key weights are reordered to our order of channels, which changes
    no output. The published code counts padding in its loss; ours does not.

    Parameters
    ----------
    folder : str or Path
        The directory that holds model_config.json and model.safetensors.

    Returns
    -------
    MaskedAutoencoder or Classifier
        The model.

    Raises
    ------
    ModelDirectoryError
        A missing or damaged file; a tensor too many, too few or of another shape; an unsupported setting. The message
        names it.
    """
    folder = Path(folder)
    settings: dict[str, Any] = read_json(folder / "model_config.json")
    tensors = read_tensors(folder / "model.safetensors")
    config = _config(settings, folder)
    pretraining, classes = "decoder_config" in settings, settings.get("dim_output")
    if not pretraining and (type(classes) is not int or classes < 2):
        raise ModelDirectoryError(
            f"{folder / 'model_config.json'}: dim_output is {classes!r}; expected the number of classes, at least 2."
        )
    parts = {"encoder": ("encoder.transformer", config.encoder_sizes)}
    modules = {"projection": "encoder.projection", "head.head.1": "norm", "head.head.2": "head"}
    names = {"cls": "encoder.cls_token"}
    if pretraining:
        parts["decoder"] = ("decoder", config.decoder_sizes)
        modules["encoder_decoder_proj"] = "decoder_projection"
        names["mask_token"] = "mask_token"
    for part, (ours, sizes) in parts.items():
        if sizes.depth > len(tensors):
            raise ModelDirectoryError(
                f"{folder / 'model_config.json'} asks for {sizes.depth} {part} blocks; the file has {len(tensors)} "
                "tensors. Fetch both anew."
            )
        for m in range(sizes.depth):
            names |= {f"{part}.layers.{m}.{name}": f"{ours}.blocks.{m}.{new}" for name, new in BLOCK_TENSORS.items()}
    names |= {f"{name}.{kind}": f"{ours}.{kind}" for name, ours in modules.items() for kind in ("weight", "bias")}
    renamed: dict[str, Tensor] = {}
    for theirs, tensor in sorted(tensors.items()):
        if theirs.endswith(STORED_CONSTANTS):
            continue
        if theirs not in names:
            raise ModelDirectoryError(f"{folder}: surplus tensor {theirs!r}, which no RoMAE model has; fetch it anew.")
        if theirs in ("cls", "mask_token"):
            tensor = tensor.reshape(-1)
        if theirs.endswith((".wq.weight", ".wk.weight")) and config.position_encoding == "rotary":
            _, sizes = parts[theirs.partition(".")[0]]
            if tensor.shape[:1] == (sizes.embed_dim,):
                # In a head, theirs go axis by axis, first channels of pairs before second ones; ours the other way.
                tensor = tensor.unflatten(0, (sizes.num_heads, config.axes, 2, -1)).transpose(1, 2).flatten(0, 3)
        renamed[names[theirs]] = tensor.float()
    pool = "cls" if config.cls_token else "mean"
    try:
        with torch.device("meta"):  # no memory and no random numbers: all weights come from the file
            model = MaskedAutoencoder(config) if pretraining else Classifier(Encoder(config), int(classes or 0), pool)
    except (RuntimeError, TypeError) as error:  # torch cannot count so many weights
        reason = str(error).partition("\n")[0]
        raise ModelDirectoryError(f"{folder / 'model_config.json'} asks for sizes beyond any model: {reason}") from None
    fill_model(model, renamed, folder)
    return model.eval()


def _config(settings: dict[str, Any], folder: Path) -> RoMAEConfig:
    """Translate the content of a published model_config.json to a RoMAEConfig.

    Without a decoder, the decoder's sizes are those of the encoder. Decoder attention is "joint", as in the published
    code.

    Args:
        settings: the content of the file.
        folder: where the file is, for messages.

    Raises:
        ModelDirectoryError: a missing key; a value of the wrong type; sizes that do not fit; or a pos_encoding other
            than "ropend" and "absolute".
    """
    encoder = settings.get("encoder_config", {})
    decoder = settings.get("decoder_config", encoder)
    encodings: dict[str, Literal["rotary", "absolute"]] = {"ropend": "rotary", "absolute": "absolute"}
    try:
        encoding = encodings.get(settings["pos_encoding"])
        if encoding is None:
            raise ModelDirectoryError(
                f"{folder}: pos_encoding {settings['pos_encoding']!r} is not supported; 'ropend' or 'absolute' is."
            )
        tubelet = settings["tubelet_size"]
        rotary = {"p": settings["p_rope_val"]} if encoding == "rotary" else {}
        return RoMAEConfig(
            axes=settings["n_pos_dims"],
            features=tubelet[0] * tubelet[1] * tubelet[2] * settings["n_channels"],
            embed_dim=encoder["d_model"],
            num_heads=encoder["nhead"],
            depth=encoder["depth"],
            mlp_ratio=_mlp_ratio(encoder),
            decoder_embed_dim=decoder["d_model"],
            decoder_num_heads=decoder["nhead"],
            decoder_depth=decoder["depth"],
            decoder_mlp_ratio=_mlp_ratio(decoder),
            decoder_attention="joint",
            position_encoding=encoding,
            cls_token=settings["use_cls"],
            dropout=encoder.get("attn_drop_rate", 0.0),
            drop_path=encoder.get("drop_path_rate", 0.0),
            norm_eps=encoder["layer_norm_eps"],
            **rotary,
        )
    except KeyError as error:
        raise ModelDirectoryError(f"{folder / 'model_config.json'}: the key {error} is missing.") from None
    except (TypeError, ValueError, IndexError, OverflowError) as error:
        raise ModelDirectoryError(f"{folder / 'model_config.json'}: {error}") from None


def _mlp_ratio(size: dict[str, Any]) -> float:
    """Return the MLP's width divided by the tokens' width, from a published encoder_config or decoder_config.

    It is "dim_feedforward" / "d_model"; if the former is missing or None, it is "mlp_ratio". Raises KeyError for a
    missing key, TypeError or ValueError for what is no number, OverflowError for a number beyond float64.
    """
    hidden = size.get("dim_feedforward")
    if hidden is None:
        return float(size["mlp_ratio"])
    return hidden / (size["d_model"] or 1)  # a width of 0 is refused with the others, by name
