"""Quality per byte: KL to the source against bits per weight of the decoder's linears, beside the rivals.

INT8-X at many rates and in its presets, round-to-nearest in groups of 128, plain INT8, and llama.cpp's own
quantiser on the same weights (it replaces K-quants in rows that are no multiple of 256). Embedding and head
stay in full precision for everybody; scales, tables and permutations count. Forms are evaluated one after the
other on the same windows.

    python docs/benchmarks/quality_curve.py --model MODEL.gguf --text FILE --out docs/benchmarks/int8x-quality

needs the extra `peers` for llama.cpp's rows. What is measured already in OUT.json is not measured again.
"""

from __future__ import annotations

import argparse
import datetime
import json
import os
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import torch

from kernels.int8x import Quantised, absmax_scales, quantise
from runtime import sensitivity
from runtime.calibration.prompts import checkpoint_texts
from runtime.checkpoint import open_checkpoint
from runtime.evaluate.score import Score
from runtime.evaluate.source import read_text, windows
from runtime.int8x.choice import CodecChoice
from runtime.int8x.codecs import code_matrix
from runtime.layers.base import LINEAR_KINDS, LinearKind
from runtime.layers.dense import Dense
from runtime.model import weights
from runtime.model.build import build_dense
from runtime.model.decoder import Decoder
from runtime.model.source import SourceModel
from runtime.progress import JobContext
from runtime.protocol.quality import Quality
from runtime.rate.plan import make_plan
from runtime.rate.rounder import Rounder
from runtime.rate.sample import take_samples
from runtime.text.encoder import encoder

RATES = (3.0, 3.4, 3.8, 4.25, 4.7, 5.1, 5.4, 6.0, 6.6, 7.2)
PRESETS = ("paper", "balanced", "fine", "small")
GROUP = 128
# fp16 scale and zero point of a group.
GROUP_BITS = 32 / GROUP
RTN_BITS = (3, 4, 5, 6, 8)
# Names and numbers of llama.cpp's file types (llama_ftype in its header).
LLAMA_TYPES = {
    "Q3_K_S": 11, "Q3_K_M": 12, "Q4_0": 2, "Q4_K_S": 14, "Q4_K_M": 15, "Q5_0": 8, "Q5_K_M": 17, "Q6_K": 18,
    "Q8_0": 7,
}  # fmt: skip
SILENT = JobContext.silent()

Linears = Iterator[tuple[int, LinearKind, torch.Tensor]]
# Puts a form's weights into the decoder and gives their bits per weight.
Form = Callable[[], tuple[Linears, Callable[[], float]]]


def main() -> None:
    """Measure what is missing, then write table and picture."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--model", type=Path, required=True)
    parser.add_argument("--text", type=Path, required=True)
    parser.add_argument("--windows", type=int, default=8)
    parser.add_argument("--out", type=Path, required=True)
    args = parser.parse_args()
    target = args.out.with_suffix(".json")
    results = json.loads(target.read_text()) if target.exists() else {"rows": []}
    results |= {"windows": args.windows, "date": str(datetime.date.today()), "machine": machine()}
    with torch.no_grad():
        for row in Curve(args).measure({row["name"] for row in results["rows"]}):
            print(row, flush=True)
            results["rows"].append(row)
            target.write_text(json.dumps(results, indent=1) + "\n")
    args.out.with_suffix(".md").write_text(markdown(results))
    draw(results, args.out.with_suffix(".svg"))


def machine() -> str:
    """Processor and cores."""
    names = [line for line in Path("/proc/cpuinfo").read_text().splitlines() if line.startswith("model name")]
    return f"{names[0].split(':')[1].strip()}, {os.cpu_count()} cores, torch {torch.__version__}"


class Taken:
    """Counts the bits of coded matrices, tables and scales included."""

    def __init__(self) -> None:
        self._bits = self._weights = 0

    @property
    def bits_per_weight(self) -> float:
        """Of everything so far."""
        return self._bits / max(self._weights, 1)

    def add(self, matrix: Quantised) -> torch.Tensor:
        """The values of a matrix, which is counted as it is stored."""
        entry, _ = code_matrix(matrix, CodecChoice())
        self._bits += entry.stored_bits
        self._weights += entry.weights
        return matrix.dequantise()


class Curve:
    """One decoder whose linears are exchanged, and the reference's predictions on every window."""

    def __init__(self, args: argparse.Namespace) -> None:
        self._path, self._checkpoint = args.model, open_checkpoint(args.model)
        self._decoder = build_dense(self._checkpoint)
        self._original = _linears_of(self._decoder)
        tokens = encoder(self._checkpoint)(read_text(args.text))
        self._windows = windows(tokens, 1024, args.windows)

    def measure(self, known: set[str]) -> Iterator[dict[str, Any]]:
        """One row per form that is not known yet."""
        forms = {name: form for name, form in self._forms().items() if name not in known}
        if forms:
            reference = [self._decoder.forward(w)[:-1] for w in self._windows]
        for name, form in forms.items():
            changed, bits = form()
            for block, kind, weight in changed:
                self._decoder.blocks[block].linears[kind] = Dense(weight)
            score, base = Score(), Score()
            for window, expected in zip(self._windows, reference, strict=True):
                score.add(self._decoder.forward(window)[:-1], expected, window[1:])
                base.add(expected, expected, window[1:])
            yield {"name": name, "bits": bits(), **score.figures(base)}

    def _forms(self) -> dict[str, Form]:
        rates = {f"INT8-X {bits:g} bit": Quality(bits=bits) for bits in RATES}
        presets = {f"INT8-X {name}": Quality.parse({"preset": name}) for name in PRESETS}
        forms: dict[str, Form] = {
            name: lambda quality=quality: self._int8x(quality) for name, quality in (rates | presets).items()
        }
        forms |= {f"RTN {b} bit g128": lambda b=b: self._round_to_nearest(b) for b in RTN_BITS}
        forms |= {f"INT8 per {one}": lambda one=one: self._int8(one) for one in ("tensor", "row")}
        return forms | {f"llama.cpp {n}": lambda n=n: self._llama(n) for n in LLAMA_TYPES}

    def _int8x(self, quality: Quality) -> tuple[Linears, Callable[[], float]]:
        rounder, taken = self._rounder(quality), Taken()

        def rounded(block: int, kind: LinearKind) -> Iterator[torch.Tensor]:
            first = 0
            for part in self._parts(block, kind):
                yield taken.add(rounder.round(block, kind, part, first))
                first += len(part)

        return (
            (i, k, torch.cat(list(rounded(i, k)))) for i, k in self._original
        ), lambda: taken.bits_per_weight

    def _rounder(self, quality: Quality) -> Rounder:
        if quality.granularity != "aware":
            return Rounder(quality)
        model = SourceModel(self._checkpoint)
        if not hasattr(self, "_measured"):
            self._measured = sensitivity.measure(model, checkpoint_texts(self._checkpoint), SILENT)
            self._samples = take_samples(model, SILENT)
        return Rounder(quality, make_plan(self._measured, quality, lambda: self._samples, 0))

    def _round_to_nearest(self, bits: int) -> tuple[Linears, Callable[[], float]]:
        changed = ((i, k, rtn(w, bits)) for (i, k), w in self._original.items())
        return changed, lambda: bits + GROUP_BITS

    def _int8(self, one: str) -> tuple[Linears, Callable[[], float]]:
        def rounded(i: int, k: LinearKind) -> torch.Tensor:
            scales = [absmax_scales(part, one) for part in self._parts(i, k)]
            pairs = zip(self._parts(i, k), scales, strict=True)
            return torch.cat([Quantised(quantise(p, s), s).dequantise() for p, s in pairs])

        return ((i, k, rounded(i, k)) for i, k in self._original), lambda: 8.0

    def _llama(self, name: str) -> tuple[Linears, Callable[[], float]]:
        folder = tempfile.TemporaryDirectory()
        path = Path(folder.name) / f"{name}.gguf"
        llama_quantise(self._path, path, LLAMA_TYPES[name])
        checkpoint, spec = open_checkpoint(path), self._decoder.spec

        def changed() -> Linears:
            with folder:
                for i, k in self._original:
                    yield i, k, weights.fused_weight(checkpoint, spec, i, k)

        bits = gguf_bits(path)
        return changed(), lambda: bits

    def _parts(self, block: int, kind: LinearKind) -> tuple[torch.Tensor, ...]:
        names = weights.part_names(self._decoder.spec, block, kind)
        return self._original[block, kind].split([self._checkpoint.shape(name)[0] for name in names])


def rtn(weight: torch.Tensor, bits: int) -> torch.Tensor:
    """Round to nearest, asymmetric with whole zero points, in groups of 128 inputs (the last may be shorter).

    At 3 and 4 bits whole zero points are much the better form: with the group's minimum as it is, KL at 4
    bits is half as large again.
    """
    rounded = []
    for group in weight.split(GROUP, dim=1):
        low, high = group.amin(1, keepdim=True).clamp(max=0), group.amax(1, keepdim=True).clamp(min=0)
        step = ((high - low) / (2**bits - 1)).clamp(min=torch.finfo(torch.float32).tiny)
        zero = (-low / step).round()
        rounded.append((((group / step).round() + zero).clamp(0, 2**bits - 1) - zero) * step)
    return torch.cat(rounded, dim=1)


def llama_quantise(source: Path, target: Path, file_type: int) -> None:
    """llama.cpp's own quantiser, from the dequantised weights of `source`."""
    import ctypes

    import llama_cpp

    params = llama_cpp.llama_model_quantize_default_params()
    params.ftype, params.allow_requantize, params.nthread = file_type, True, 2
    code = llama_cpp.llama_model_quantize(str(source).encode(), str(target).encode(), ctypes.byref(params))
    if code:
        raise RuntimeError(f"llama.cpp's quantiser failed with code {code}")


def gguf_bits(path: Path) -> float:
    """Bits per weight of the decoder's linears in a GGUF file."""
    from gguf import GGUFReader

    linears = [t for t in GGUFReader(path).tensors if t.name.startswith("blk.") and len(t.shape) == 2]
    return 8 * sum(t.n_bytes for t in linears) / sum(t.n_elements for t in linears)


def _linears_of(decoder: Decoder) -> dict[tuple[int, LinearKind], torch.Tensor]:
    found: dict[tuple[int, LinearKind], torch.Tensor] = {}
    for index, block in enumerate(decoder.blocks):
        for kind in LINEAR_KINDS:
            layer = block.linears[kind]
            assert isinstance(layer, Dense)
            found[index, kind] = layer.weight
    return found


def markdown(results: dict[str, Any]) -> str:
    """The rows by size."""
    conditions = f"{results['date']}; {results['machine']}"
    lines = [
        f"{results['windows']} windows of 1024 tokens of WikiText-2; {conditions}.",
        "",
        "| form of the decoder's linears | bit/w | KL | perplexity | same first choice |",
        "|---|---|---|---|---|",
    ]
    for row in sorted(results["rows"], key=lambda row: row["bits"]):
        figures = f"{row['bits']:.3f} | {row['kl']:.4f} | {row['ppl']:.3f} | {100 * row['top1']:.1f} %"
        lines.append(f"| {row['name']} | {figures} |")
    return "\n".join(lines) + "\n"


# How a row's name begins, its mark, and what the legend says.
FAMILIES = {
    "INT8-X paper": ("*", "INT8-X, absmax steps (presets paper and fine)"),
    "INT8-X fine": ("*", None),
    "INT8-X": ("o-", "INT8-X, steps by sensitivity"),
    "RTN": ("s--", "round to nearest, groups of 128"),
    "INT8 per": ("D", "plain INT8"),
    "llama.cpp": ("^", "llama.cpp"),
}


def draw(results: dict[str, Any], path: Path) -> None:
    """KL (logarithmic) against bits per weight, one line a family."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(9, 6), layout="constrained")
    axes = figure.add_subplot()
    colours = {"INT8-X paper": "C4", "INT8-X fine": "C4", "INT8-X": "C0", "RTN": "C1", "INT8 per": "C2"}
    for family, (mark, label) in FAMILIES.items():
        rows = [row for row in results["rows"] if _family(row["name"]) == family]
        rows.sort(key=lambda row: row["bits"])
        colour = colours.get(family, "C3")
        axes.plot([r["bits"] for r in rows], [r["kl"] for r in rows], mark, label=label, color=colour)
        for row in rows if family != "INT8-X" else []:
            short = row["name"].removeprefix("llama.cpp ").removeprefix("INT8-X ").removesuffix(" g128")
            axes.annotate(short, (row["bits"], row["kl"]), xytext=(6, 5), textcoords="offset points", size=8)
    axes.set(
        yscale="log", xlabel="bits per weight, tables and scales counted", ylabel="KL to the source, nats"
    )
    axes.set_title("Quality per byte of the decoder's linears, SmolLM2-135M-Instruct, WikiText-2")
    axes.grid(alpha=0.3, which="both")
    axes.legend()
    figure.savefig(path)


def _family(name: str) -> str:
    return next(family for family in FAMILIES if name.startswith(family))


if __name__ == "__main__":
    main()
