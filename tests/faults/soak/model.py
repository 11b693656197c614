"""A tiny random model in a home of its own, for a real engine that costs next to nothing."""

import json

from safetensors.torch import save_file

from runtime.prepare.pipeline import prepare
from runtime.progress import JobContext
from runtime.protocol import Prepare
from runtime.protocol.quality import Quality
from tests.fakes.small_tokenizers import write_byte_level
from tests.runtime.model.tiny import tiny_model

SIZES = {"hidden_size": 128, "intermediate_size": 160, "num_attention_heads": 4, "vocab_size": 512}
CONTEXT, BASE = 512, "rtn4"


def prepare_tiny(folder):
    """Prepare it under DECDEC_HOME; gives its name."""
    source = folder / "tiny"
    source.mkdir()
    _, checkpoint = tiny_model("llama", spread=0.04, max_position_embeddings=CONTEXT, **SIZES)
    save_file({n: checkpoint.load(n).contiguous() for n in checkpoint.names()}, source / "model.safetensors")
    (source / "config.json").write_text(json.dumps(checkpoint.config))
    write_byte_level(source)
    # The presets that measure first cost many times as much.
    asked = Prepare(str(source), quality=Quality("fine"), bases=(BASE,))
    return prepare(asked, JobContext.silent()).name
