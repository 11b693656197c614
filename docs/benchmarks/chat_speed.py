"""Chat speed on the CPU, side by side in one run: this project, transformers in fp32, llama.cpp.

All contenders answer one prompt greedily with the weights of one GGUF file, each in a process of its own,
in turn, several rounds; the table gives medians and ratios of one run. Nothing else should run meanwhile.

    python docs/benchmarks/chat_speed.py --model SmolLM2-135M-Instruct --out docs/benchmarks/chat-speed-cpu

needs the model prepared and tuned (`decdec-chat pull`, `decdec-chat tune`). Peers that are not installed (the
extra `peers` builds llama.cpp) are left out.
"""

from __future__ import annotations

import argparse
import datetime
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import Any

Parts = dict[str, float]

PROMPT = "Tell me a long story about a lighthouse keeper and the sea."
TOKENS = 128
CONTENDERS = {
    "transformers fp32": "transformers",
    "llama.cpp, the GGUF itself": "llama_cpp",
    "int8 (lossless)": "int8",
    "4-bit, slider 0 %": "slider_0",
    "4-bit, slider 10 %": "slider_10",
}


def main() -> None:
    """Run the contenders in turn, or one of them when called by itself."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--model", default="SmolLM2-135M-Instruct")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--threads", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--out", type=Path)
    parser.add_argument("--only", help=argparse.SUPPRESS)
    parser.add_argument("--folder", type=Path, help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.only:
        print(json.dumps(globals()[f"speed_{args.only}"](args)))
        return
    speeds, parts = compare(args)
    report(args, speeds, parts)


def compare(args: argparse.Namespace) -> tuple[dict[str, list[float]], dict[str, Parts]]:
    """tokens/s of every contender in every round, and the parts of a step where they are known."""
    speeds: dict[str, list[float]] = {name: [] for name in present()}
    parts: dict[str, Parts] = {}
    with tempfile.TemporaryDirectory() as folder:
        export(source_of(args.model), Path(folder))
        for number in range(args.rounds):
            for name, key in present().items():
                result = measure(args, key, folder)
                speeds[name].append(result.pop("tokens_per_s"))
                parts |= {name: result} if result else {}
                print(f"round {number + 1}: {name}: {speeds[name][-1]:.1f} tok/s", file=sys.stderr)
    return speeds, parts


def present() -> dict[str, str]:
    """The contenders that are installed."""
    return {name: key for name, key in CONTENDERS.items() if key != "llama_cpp" or find_spec("llama_cpp")}


def measure(args: argparse.Namespace, key: str, folder: str) -> Parts:
    """One contender in a process of its own: tokens_per_s, and milliseconds of the parts of a step."""
    command = [sys.executable, __file__, "--only", key, "--folder", folder]
    command += ["--model", args.model, "--threads", str(args.threads)]
    run = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=True)
    return dict(json.loads(run.stdout.splitlines()[-1]))


def report(args: argparse.Namespace, speeds: dict[str, list[float]], parts: dict[str, Parts]) -> None:
    """Markdown on stdout, and beside it JSON, under --out."""
    from runtime.tuner.profile import processor_name

    about = {
        "date": datetime.date.today().isoformat(),
        "machine": f"{processor_name()}, {os.cpu_count()} cores",
        "threads": args.threads,
        "rounds": args.rounds,
        "tokens": TOKENS,
        "model": args.model,
    }
    lines = [", ".join(f"{key} {value}" for key, value in about.items()), "", *speed_table(speeds), ""]
    lines += ["Where a step goes, in milliseconds (medians of the last round):", "", *part_table(parts)]
    print("\n".join(lines))
    if args.out:
        args.out.with_suffix(".md").write_text("\n".join(lines) + "\n")
        document = {**about, "speeds": speeds, "step_ms": parts}
        args.out.with_suffix(".json").write_text(json.dumps(document, indent=1) + "\n")


def speed_table(speeds: dict[str, list[float]]) -> list[str]:
    """Medians, ratios and ranges."""
    medians = {name: statistics.median(values) for name, values in speeds.items()}
    rivals = [name for name in list(CONTENDERS)[:2] if name in medians]
    heads = "".join(f" × {name.split(',')[0]} |" for name in rivals)
    lines = [f"| | tok/s |{heads} range |", "|---|---|" + "---|" * len(rivals) + "---|"]
    for name, value in medians.items():
        span = f"{min(speeds[name]):.1f} to {max(speeds[name]):.1f}"
        ratios = "".join(f" {value / medians[rival]:.2f} |" for rival in rivals)
        lines.append(f"| {name} | {value:.1f} |{ratios} {span} |")
    return lines


def part_table(parts: dict[str, Parts]) -> list[str]:
    """Milliseconds of a decode step by part."""
    names = list(next(iter(parts.values())))
    lines = [f"| | {' | '.join(names)} |", "|---" * (len(names) + 1) + "|"]
    return lines + [f"| {n} | {' | '.join(f'{row[k]:.2f}' for k in names)} |" for n, row in parts.items()]


def source_of(model: str) -> Path:
    """The GGUF file that the prepared model was made from."""
    from runtime import store

    return Path(store.find(model).record["source_path"])


def export(gguf: Path, folder: Path) -> None:
    """The GGUF's weights as fp32 safetensors, so that transformers loads exactly the same numbers."""
    from safetensors.torch import save_file

    from runtime.checkpoint import open_checkpoint

    checkpoint = open_checkpoint(gguf)
    tensors = {name: checkpoint.load(name).float().contiguous() for name in checkpoint.names()}
    save_file(tensors, folder / "model.safetensors", metadata={"format": "pt"})
    (folder / "config.json").write_text(json.dumps({**checkpoint.config, "dtype": "float32"}))
    checkpoint.write_tokenizer(folder)


def timed(step: Callable[[], Any]) -> float:
    """tokens/s over TOKENS calls of a step that makes one token; the better of two tries."""
    best = 0.0
    for _ in range(2):
        started = time.perf_counter()
        for _ in range(TOKENS):
            step()
        best = max(best, TOKENS / (time.perf_counter() - started))
    return best


def speed_transformers(args: argparse.Namespace) -> Parts:
    """`generate` with its own KV cache; the prefill is measured apart and taken off."""
    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer

    torch.set_num_threads(args.threads)
    tokenizer = AutoTokenizer.from_pretrained(args.folder)
    model = AutoModelForCausalLM.from_pretrained(args.folder, dtype=torch.float32)
    ids = tokenizer(PROMPT, return_tensors="pt").input_ids
    settings = {"do_sample": False, "pad_token_id": 0, "eos_token_id": None}

    def seconds(count: int) -> float:
        started = time.perf_counter()
        model.generate(ids, max_new_tokens=count, min_new_tokens=count, **settings)
        return time.perf_counter() - started

    seconds(4)
    return {"tokens_per_s": (TOKENS - 1) / (seconds(TOKENS) - seconds(1))}


def speed_llama_cpp(args: argparse.Namespace) -> Parts:
    """llama.cpp on the GGUF file, greedy."""
    from llama_cpp import Llama

    model = Llama(str(source_of(args.model)), n_ctx=1024, n_threads=args.threads, verbose=False)
    model.eval(model.tokenize(PROMPT.encode()))
    return {"tokens_per_s": timed(lambda: model.eval([model.sample(temp=0.0)]))}


def speed_int8(args: argparse.Namespace) -> Parts:
    """This project, the lossless INT8 layers."""
    return speed_of_engine(args, "int8", 0.0)


def speed_slider_0(args: argparse.Namespace) -> Parts:
    """This project, 4-bit base, no correction."""
    return speed_of_engine(args, "awq4", 0.0)


def speed_slider_10(args: argparse.Namespace) -> Parts:
    """This project, 4-bit base, slider at 10 %."""
    return speed_of_engine(args, "awq4", 10.0)


def speed_of_engine(args: argparse.Namespace, base: Any, slowdown: float) -> Parts:
    """Greedy decode through the engine; the slider must be tuned for a position above 0."""
    from runtime.worker import environment

    environment.prepare()
    import torch

    from runtime.engine.cpu_loading import load_cpu_engine
    from runtime.progress import JobContext
    from runtime.protocol import Load
    from runtime.text.tokenizer import Tokenizer

    torch.set_num_threads(args.threads)
    loaded = load_cpu_engine(Load(args.model, base), JobContext.silent())
    if slowdown and not loaded.loaded.path:
        raise SystemExit(f"tune first: {loaded.loaded.untuned_reason}")
    engine = loaded.engine
    engine.set_slowdown(slowdown, False)
    prompt = Tokenizer.from_folder(loaded.folder).encode(PROMPT)
    logits = engine.prefill(prompt, lambda: None)

    def step() -> None:
        nonlocal logits
        logits = engine.decode(int(logits.argmax()))

    speed = timed(step)
    return {"tokens_per_s": speed, **step_parts([engine.time_step(7) for _ in range(48)])}


def step_parts(timers: list[Any]) -> Parts:
    """Medians over timed steps, in milliseconds."""

    def middle(value: Callable[[Any], float]) -> float:
        return 1e3 * statistics.median(value(timer) for timer in timers)

    whole, head = middle(lambda t: t.step_s), middle(lambda t: t.head_s)
    products = {kind: middle(lambda t, k=kind: sum(t.products[k])) for kind in timers[0].products}
    lost = middle(lambda t: t.correction_s)
    rest = whole - head - sum(products.values()) - lost
    return {**products, "head": head, "corrections": lost, "norms, attention, Python": rest, "step": whole}


if __name__ == "__main__":
    main()
