"""All measurements that need a GPU: `python -m runtime.bench.run_gpu --out FOLDER [--model FILE ...]`.

Writes FOLDER/int8x-gpu.json and .md after every row, so that a run cut short loses nothing, and goes on when
a section fails. Needs torch, triton and numba; transformers for the eager baseline, gguf, msgspec and
platformdirs for a --model that is no file of `block_file`, dfloat11, dahuffman and CuPy for lossless bf16.
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import date
from functools import partial
from pathlib import Path
from typing import Any

import torch

from runtime.bench import forecast, sass
from runtime.bench.gpu_report import GpuReport, Section
from runtime.bench.shapes import LLAMA, MINICPM, ModelShape
from runtime.bench.token_formats import FAST, FORMATS, PLAIN_PLANES, SMALLEST, Dfloat, Format, Planes
from runtime.bench.warming import run_part, tasks, warm

Row = dict[str, Any]
MODULE = "runtime.bench.run_gpu"
DEVICE = "cuda"
LLAMA_BLOCKS = 4
SECONDS, WARM_SECONDS = 460.0, 150.0
MOST_PROCESSES = 12
MOST_VARIANTS = 8
_PRODUCT = (
    "us: median of replays of a CUDA graph over copies that do not fit the cache; ratio: the time of bf16 by"
    " cuBLAS over it, from the same run; preparing the input is not counted. bits: all that a matrix keeps on"
    " the device. error: to float64, relative. extra bytes: the most a call allocates, input and result."
)
NOTES = {
    "token": "All fused linears of one token in one CUDA graph, random weights at the paper's shares; inputs"
    " are prepared (norm, gate, digits) inside, for bf16 by torch's operations. weight_bytes: on the device."
    " error: of the last output to float64; bf16 outputs alone cost 3e-3.",
    "eager": "transformers' own forward pass of one token, head included, random bf16 weights.",
    "products": _PRODUCT,
    "low rates": _PRODUCT,
    "real tensors": _PRODUCT,
    "small products": _PRODUCT,
    "decoders": "(3,5,8) of 16.8 M weights, to int8; GB/s count bytes read and written.",
    "decode to bf16": "of copy: bytes read and written a second over those of a copy of the same matrix.",
    "prepare": "us of making digits for one vector; norm: RMSNorm, gate: silu(x) * up, in the same kernel.",
    "instructions": "Machine instructions per weight and lane in the loops around the tensor cores, one loop"
    " per plane width; escapes and lists of outliers come on top.",
    "forecast": "Not measured: the large matrix at the greater of memory time (90 % of the card's bandwidth)"
    " and of the H200's cycles, scaled by multiprocessors and clock.",
}


def main() -> None:
    """Parse the arguments and measure, or compile one part of the kernels."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--out", type=Path, default=Path("int8x-gpu"))
    parser.add_argument(
        "--model", type=Path, action="append", default=[], help="a .gguf, a folder, a block file"
    )
    parser.add_argument("--seconds", type=float, default=SECONDS, help="no section begins later than this")
    parser.add_argument("--only", action="append", default=[], help="sections that begin so, repeatable")
    parser.add_argument("--warm", metavar="I/N", help="only compile every Nth kernel from the Ith on")
    arguments = parser.parse_args()
    if arguments.warm:
        part, parts = (int(number) for number in arguments.warm.split("/"))
        run_part(list(tasks((MINICPM, LLAMA), (SMALLEST, PLAIN_PLANES), DEVICE)), part, parts)
        return
    if not torch.cuda.is_available():
        parser.error("there is no GPU that torch can use")
    report = GpuReport(arguments.out, about(), arguments.seconds, NOTES, tuple(arguments.only))
    measure(report, arguments.model)


def about() -> Row:
    """What this ran on."""
    import triton

    card = torch.cuda.get_device_properties(0)
    versions = {"torch": torch.__version__, "triton": triton.__version__, "date": str(date.today())}
    return {"GPU": card.name, "SMs": card.multi_processor_count, "GB": card.total_memory // 10**9, **versions}


def measure(report: GpuReport, models: list[Path]) -> None:
    """Every section, the most wanted ones first."""
    processes = max(1, min(MOST_PROCESSES, os.cpu_count() or 1))
    report.run("compile", partial(warm, MODULE, processes, WARM_SECONDS))
    report.run("token MiniCPM5-1B", partial(token_rows, MINICPM, None, FORMATS, report.fail))
    report.run("eager MiniCPM5-1B", partial(eager_rows, MINICPM))
    for name, section in sections(models):
        report.run(name, section)
    report.run("small products", small_rows)
    report.run("forecast", partial(forecast_rows, report))
    report.run("token Llama-3-8B", partial(token_rows, LLAMA, LLAMA_BLOCKS, FORMATS, report.fail))
    dfloat = (FORMATS[0], Dfloat())
    report.run("DFloat11 MiniCPM5-1B", partial(token_rows, MINICPM, None, dfloat, report.fail))
    report.run("kernels a token", partial(kernel_rows, MINICPM))


def sections(models: Sequence[Path]) -> Iterator[tuple[str, Section]]:
    """Products and decoders of single matrices."""
    yield "products", large_rows
    yield "low rates", low_rate_rows
    for path in models:
        yield f"real tensors {path.stem}", partial(real_rows, path)
    yield "decoders", ladder_rows
    yield "decode to bf16", decode_rows
    yield "prepare", prepare_rows
    yield "instructions", instruction_rows


def token_rows(
    shape: ModelShape,
    blocks: int | None,
    formats: Sequence[Format],
    fail: Callable[[str, Exception], None],
) -> Iterator[Row]:
    """One token in every format."""
    from runtime.bench.one_token import measure_formats

    yield from measure_formats(shape, DEVICE, formats, fail, blocks)


def eager_rows(shape: ModelShape) -> Iterator[Row]:
    """The whole model by transformers."""
    from runtime.bench.eager_model import model_rows

    yield from model_rows(shape, DEVICE)
    torch.cuda.empty_cache()


def kernel_rows(shape: ModelShape) -> Iterator[Row]:
    """How many kernels a token takes in each format; the last section, for profiling slows what follows."""
    from runtime.bench.one_token import count_kernels, draw_weights

    weights = draw_weights(shape, DEVICE)
    for form in FORMATS:
        plain = replace(form, launches=((None, None),)) if isinstance(form, Planes) else form
        yield {"model": shape.name, "format": form.name, "kernels": count_kernels(shape, plain, weights)}


def large_rows() -> Iterator[Row]:
    """The matrix of a feed-forward network of 8 billion parameters."""
    from runtime.bench.device_products import LARGE, random_rows

    yield from random_rows(LARGE, device=DEVICE)


def low_rate_rows() -> Iterator[Row]:
    """The same matrix with few bits."""
    from runtime.bench import device_products

    yield from device_products.low_rate_rows(device=DEVICE)


def small_rows() -> Iterator[Row]:
    """Matrices of both models."""
    from runtime.bench.device_products import FASTER, SHAPES, random_rows

    for shape in SHAPES[1:]:
        yield from random_rows(shape, (SMALLEST, FAST, FASTER), DEVICE)


def real_rows(path: Path) -> Iterator[Row]:
    """Linears of a checkpoint."""
    from runtime.bench import device_products

    yield from device_products.real_rows(path, DEVICE)


def ladder_rows() -> Iterator[Row]:
    """Decoders v7 to v10, and the fused one's bytes a second."""
    from runtime.bench.bitmap_products import decode_rates, decoder_ladder
    from runtime.bench.mixture import paper_mixture

    q = paper_mixture().draw(4096, 4096)
    for name, seconds in decoder_ladder(q).items():
        yield {"decoder": name, "us a million weights": 1e6 * seconds}
    for name, rate in decode_rates(q).items():
        yield {"decoder": "device copy" if name == "copy" else f"v10 to {name}", "GB/s": rate}


def decode_rows() -> Iterator[Row]:
    """Adaptive planes to bf16."""
    from runtime.bench import device_products

    yield from device_products.decode_rows(device=DEVICE)


def prepare_rows() -> Iterator[Row]:
    """Inputs of products, with and without norm and gate."""
    from runtime.bench.device_products import measure_prepare

    for columns, prologue in (
        (1536, "norm"),
        (4608, "gate"),
        (4096, "none"),
        (4096, "norm"),
        (14336, "gate"),
    ):
        yield measure_prepare(columns, prologue)


def instruction_rows() -> Iterator[Row]:
    """Machine instructions a weight in the loops of the product kernels this process has used."""
    from kernels.gpu.bitmap_product_kernel import bitmap_product_kernel
    from kernels.gpu.product_kernel import product_kernel

    for name, kernel in (("adaptive planes", product_kernel), ("(3,5,8)", bitmap_product_kernel)):
        for variant, cubin in enumerate(sass.compiled_cubins(kernel)[:MOST_VARIANTS]):
            for loop in sass.loops(sass.disassemble(cubin)):
                row = {"kernel": name, "variant": variant, "instructions": loop.instructions}
                yield {**row, "IMMA": loop.tensor_core, "a weight": loop.per_weight}


def forecast_inputs(rows: Mapping[str, Sequence[Row]]) -> list[Row]:
    """Measured products of the large matrix."""
    return [row for row in rows.get("products", []) if row["format"] != "bf16"]


def forecast_rows(report: GpuReport) -> Iterator[Row]:
    """The large matrix on other cards."""
    yield from forecast.forecast_rows(forecast_inputs(report.rows), measured_card())


def measured_card() -> forecast.Card:
    """The GPU at hand, with the highest clock it names; an H200's where torch does not say one."""
    card = torch.cuda.get_device_properties(0)
    ghz = getattr(card, "clock_rate", 0) / 1e6 or forecast.H200.ghz
    return replace(forecast.H200, name=card.name, sms=card.multi_processor_count, ghz=ghz)


if __name__ == "__main__":
    main()
