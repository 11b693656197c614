"""Small INT8-X models, and ways to damage them."""

import json
from pathlib import Path

import pytest
import torch
from safetensors import safe_open
from safetensors.torch import save_file

from runtime.int8x import CodecChoice, Int8xWriter, jobs
from runtime.int8x.codecs import checksum
from runtime.int8x.config import parse_entry, seal
from runtime.int8x.shards import sum_files
from runtime.progress import JobContext

PAPER = {"preset": "paper"}


def draw(n_out, n_in, seed, tail=4.0):
    """Weights with outliers, so that coding is worth it."""
    generator = torch.Generator().manual_seed(seed)
    values = torch.randn(n_out, n_in, generator=generator)
    return values * torch.exp(torch.randn(n_out, n_in, generator=generator) * tail / 8)


@pytest.fixture
def weights():
    """Name -> tensor: matrices that code well, one that does not, and plain ones."""
    return {
        "model.embed_tokens.weight": draw(130, 48, 1),
        "model.layers.0.self_attn.q_proj.weight": draw(64, 48, 2, tail=6),
        "model.layers.0.mlp.down_proj.weight": torch.rand(16, 40, generator=torch.Generator().manual_seed(3)),
        "model.layers.0.input_layernorm.weight": torch.ones(48, dtype=torch.bfloat16),
        "model.norm.weight": torch.linspace(0, 1, 48),
    }


def add(writer, weights, names=None):
    for name in names or weights:
        (writer.add if weights[name].dim() == 2 else writer.add_plain)(name, weights[name])


def write_model(folder: Path, weights, granularity="tensor", **options):
    writer = Int8xWriter(folder, granularity, **options)
    add(writer, weights)
    config = {"model_type": "llama", "quantization_config": writer.finish()}
    (folder / "config.json").write_text(json.dumps(config))
    return folder


@pytest.fixture
def model(tmp_path, weights):
    return write_model(tmp_path / "model", weights)


@pytest.fixture
def bitmap_model(tmp_path, weights):
    return write_model(tmp_path / "bitmaps", weights, choice=CodecChoice("bitmap", (3, 5, 8)))


def edit_config(folder, change):
    """Apply `change` to the quantization_config on disk and seal it again."""
    config = json.loads((folder / "config.json").read_text())
    change(config["quantization_config"])
    config["quantization_config"] = seal(config["quantization_config"])
    (folder / "config.json").write_text(json.dumps(config))


def edit_streams(folder, change):
    """Apply `change` to the dict of stored streams of the (only) shard."""
    path = folder / "model-00001.safetensors"
    with safe_open(path, "pt") as shard:
        metadata, streams = shard.metadata(), {key: shard.get_tensor(key).clone() for key in shard.keys()}  # noqa: SIM118
    change(streams)
    save_file(streams, path, metadata)
    edit_config(folder, lambda config: config.update(files=sum_files(folder, [path.name])))


def forge(folder, name, change):
    """Apply `change` to a tensor's streams by suffix and make every checksum and length right again."""

    def edit(streams):
        mine = {key.removeprefix(f"{name}."): part for key, part in streams.items() if key.startswith(name)}
        change(mine)
        streams.update({f"{name}.{key}": part.contiguous() for key, part in mine.items()})
        forged.update(mine)

    def reseal(config):
        entry = config["tensors"][name]
        entry.update({key: forged[key].numel() for key in ("plane", "short", "tail") if key in entry})
        layout = parse_entry(name, entry).layout()
        entry["crc32"] = checksum(forged[key] for key in layout)

    forged = {}
    edit_streams(folder, edit)
    edit_config(folder, reseal)


CONFIG = {
    "architectures": ["LlamaForCausalLM"],
    "model_type": "llama",
    "hidden_size": 48,
    "intermediate_size": 40,
    "num_hidden_layers": 1,
    "num_attention_heads": 4,
    "vocab_size": 130,
}


@pytest.fixture
def source(tmp_path, weights):
    folder = tmp_path / "source"
    folder.mkdir()
    bf16 = {name: weight.bfloat16() for name, weight in weights.items()}
    save_file(bf16, folder / "model.safetensors")
    (folder / "config.json").write_text(json.dumps(CONFIG))
    (folder / "tokenizer.json").write_text(json.dumps({"version": "1.0", "model": {"type": "BPE"}}))
    (folder / "tokenizer_config.json").write_text("{}")
    return folder


@pytest.fixture
def coded(source, tmp_path):
    folder = tmp_path / "coded"
    jobs.encode({"source": str(source), "destination": str(folder), "quality": PAPER}, JobContext.silent())
    return folder
