"""The decode benchmark's sections in order of what is wanted most, and what they share."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial

import torch
from torch.nn import functional

from runtime.bench import eager_model
from runtime.bench.decode import compiled, peers
from runtime.bench.decode.answers import first_token_rows, move_rows
from runtime.bench.decode.built import Builder, release
from runtime.bench.decode.memory import memory_row
from runtime.bench.decode.random_model import BF16, INT8X, Mode
from runtime.bench.decode.step_rows import Known, bytes_read, context_rows, kernel_rows, step_rows
from runtime.bench.decode.stepping import Tables
from runtime.bench.decode.tables import compile_for_tuning, tune
from runtime.bench.gpu_report import GpuReport, Section
from runtime.bench.gpu_timing import copies_needed, graph_microseconds
from runtime.bench.shapes import LLAMA, LLAMA_3B, MINICPM, PHI, ModelShape
from runtime.bench.table import Row
from runtime.tuner.link import link_gb_s
from runtime.tuner.replays import warm_up

FOUR, THREE = Mode("awq4"), Mode("awq3")
MAIN_MODES = (Mode(BF16), FOUR, THREE, Mode(INT8X))
MORE_MODES = (Mode("int8x3.4"), Mode("int8x4.2"))
# Shapes by importance, each with the modes that are measured.
MODES = {LLAMA: (*MAIN_MODES, *MORE_MODES), MINICPM: MAIN_MODES, LLAMA_3B: MAIN_MODES, PHI: MAIN_MODES}
CONTEXTS = (100, 2000, 8000)
LONG_CONTEXT = 8192
PEER_SECONDS, COMPILED_SECONDS, TUNER_SECONDS = 90.0, 180.0, 60.0
_CEILING_SHAPE = (28672, 4096)


@dataclass(slots=True)
class DecodeBench:
    """Runs sections into a report. `prepared`: names of models in the store; `begin` hears of every section
    and may raise to end the run.
    """

    report: GpuReport
    device: torch.device
    warm: Section
    prepared: Sequence[str]
    begin: Callable[[str], object]
    known: Known
    builder: Builder
    tables: dict[tuple[ModelShape, Mode], Tables]

    @classmethod
    def new(
        cls,
        report: GpuReport,
        device: torch.device,
        warm: Section,
        prepared: Sequence[str] = (),
        begin: Callable[[str], object] = lambda name: None,
    ) -> DecodeBench:
        """`warm`: the section that compiles kernels."""
        return cls(report, device, warm, prepared, begin, Known(), Builder(device), {})

    def all(self) -> None:
        """Every section, the most wanted ones first."""
        self._run("compile", self.warm)
        self._run("ceiling", self.ceiling_rows)
        self._run("compile for tuning", self.compile_rows)
        self._of_shape(LLAMA, MAIN_MODES)
        self._run("contexts", self.long_rows)
        self._run("memory", self.memory_rows)
        self._run("first token", self.first_rows)
        self._run("slider moves", self.slider_rows)
        self._of_shape(MINICPM, MODES[MINICPM])
        for name in self.prepared:
            self._run(f"prepared {name}", partial(self.prepared_rows, name))
        self._run(f"steps {LLAMA.name}, more", partial(self.step_rows, LLAMA, MORE_MODES))
        for shape in (LLAMA_3B, PHI):
            self._of_shape(shape, MODES[shape])
        for shape in (LLAMA, MINICPM):
            self._run(f"peers {shape.name}", partial(peers.peer_rows, shape, PEER_SECONDS))
        for shape in (LLAMA, MINICPM):
            self._run(f"kernels {shape.name}", partial(self.kernel_rows, shape))
        for shape in (MINICPM, LLAMA):
            self._run(f"compiled {shape.name}", partial(compiled.compiled_rows, shape, COMPILED_SECONDS))

    def _run(self, name: str, section: Section) -> None:
        self.begin(name)
        self.report.run(name, section)
        release()

    def _of_shape(self, shape: ModelShape, modes: Sequence[Mode]) -> None:
        self._run(f"transformers {shape.name}", partial(self.transformers_rows, shape))
        self._run(f"steps {shape.name}", partial(self.step_rows, shape, modes))

    def ceiling_rows(self) -> Iterator[Row]:
        """What memory and link give."""
        warm_up()
        self.known.ceiling_gb_s = ceiling_gb_s(self.device)
        yield {"memory GB/s": self.known.ceiling_gb_s, "link GB/s": self._link()}

    def compile_rows(self) -> Iterator[Row]:
        """Kernels that the tuner tries, in parallel."""
        wanted = [(shape, mode.name) for shape, modes in MODES.items() for mode in modes if mode.corrected]
        seconds = compile_for_tuning(wanted, self.device, self._link(), TUNER_SECONDS)
        yield {"bases": len(wanted), "seconds": seconds}

    def prepared_rows(self, name: str) -> Iterator[Row]:
        """A model of the store; what its loading needs is imported only for it."""
        from runtime.bench.decode.prepared import prepared_rows

        yield from prepared_rows(name, self.known)

    def transformers_rows(self, shape: ModelShape) -> Iterator[Row]:
        """Eager, and captured in one graph."""
        for row in eager_model.model_rows(shape, self.device):
            if row["format"].endswith("eager"):
                self.known.eager_ms[shape.name] = row["ms"]
            yield {**row, "tokens/s": 1e3 / row["ms"]}

    def step_rows(self, shape: ModelShape, modes: Sequence[Mode]) -> Iterator[Row]:
        """Every mode, at every position of the slider where it moves; one that fails leaves the others."""
        for mode in modes:
            if self.report.left_s <= 0:
                raise RuntimeError(f"no time was left for {mode.name}")
            try:
                yield from self.mode_rows(shape, mode)
            except Exception as error:
                self.report.fail(f"{shape.name} {mode.name}", error)

    def mode_rows(self, shape: ModelShape, mode: Mode) -> Iterator[Row]:
        """One mode, tuned before if it is corrected."""
        tables = self._tuned(shape, mode)
        for row in step_rows(self.builder.build(shape, mode, tables).subject, tables, self.known):
            if mode.name == BF16:
                self.known.bf16_ms[shape.name] = row["ms"]
                row |= self.known.beside(shape.name, row["ms"], 1e9 * row["GB read"])
            yield row

    def long_rows(self) -> Iterator[Row]:
        """Llama-3-8B at three lengths."""
        for mode in (THREE, FOUR):
            built = self.builder.build(LLAMA, mode, context=LONG_CONTEXT)
            yield from context_rows(built.subject, CONTEXTS, partial(bytes_read, built.model))
            del built

    def memory_rows(self) -> Iterator[Row]:
        """Llama-3-8B at 3 bits with both kinds of cache."""
        for bits in (16, 8):
            yield memory_row(self.builder.build(LLAMA, THREE, self._tuned(LLAMA, THREE), kv_bits=bits), bits)

    def first_rows(self) -> Iterator[Row]:
        """Prompts with and without correction."""
        for corrected in (True, False):
            tables = self._tuned(LLAMA, THREE)
            built = self.builder.build(LLAMA, THREE, tables, prompt_correction=corrected)
            yield from first_token_rows(built.subject, corrected)
            del built

    def slider_rows(self) -> Iterator[Row]:
        """A thousand moves."""
        yield from move_rows(self.builder.build(LLAMA, THREE, self._tuned(LLAMA, THREE)).subject)

    def kernel_rows(self, shape: ModelShape) -> Iterator[Row]:
        """Kernels of a token in each of the main modes."""
        for mode in MAIN_MODES:
            tables = self._tuned(shape, mode)
            yield from kernel_rows(self.builder.build(shape, mode, tables).subject, tables)

    def _tuned(self, shape: ModelShape, mode: Mode) -> Tables | None:
        """Tables of the mode, tuned once in a run."""
        if not mode.corrected:
            return None
        if (shape, mode) not in self.tables:
            release()
            self.tables[shape, mode] = tune(shape, mode.name, self.device, self._link())
        return self.tables[shape, mode]

    def _link(self) -> float:
        """GB/s, measured once in a run."""
        if self.known.link_gb_s is None:
            self.known.link_gb_s = link_gb_s(self.device)
        return self.known.link_gb_s


def ceiling_gb_s(device: torch.device) -> float:
    """Bytes a nanosecond of a large bf16 product by cuBLAS."""
    dense = torch.randn(_CEILING_SHAPE, device=device).bfloat16()
    x = torch.randn(_CEILING_SHAPE[1], device=device).bfloat16()
    calls = [partial(functional.linear, x, dense.clone()) for _ in range(copies_needed(dense.nbytes))]
    # A device that was idle reads a tenth too slow at first.
    return dense.nbytes / min(graph_microseconds(calls) for _ in range(2)) / 1e3
