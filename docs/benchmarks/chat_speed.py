"""Chat speed on the CPU, side by side in one run: this project, transformers in fp32, llama.cpp.

All contenders answer one prompt greedily with the weights of one GGUF file, each in a process of its own,
in turn, several rounds; the table gives medians and ratios of one run. Nothing else should run meanwhile.

    python docs/benchmarks/chat_speed.py --model SmolLM2-135M-Instruct --out docs/benchmarks/chat-speed-cpu

needs the model prepared and tuned (`decdec-chat pull`, `decdec-chat tune`) and the extra `peers` installed.
"""

from __future__ import annotations

import argparse
import datetime
import json
import os
import platform
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

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
        print(json.dumps({"tokens_per_s": globals()[f"speed_{args.only}"](args)}))
        return
    report(args, compare(args))


def compare(args: argparse.Namespace) -> dict[str, list[float]]:
    """tokens/s of every contender in every round."""
    speeds: dict[str, list[float]] = {name: [] for name in CONTENDERS}
    with tempfile.TemporaryDirectory() as folder:
        export(source_of(args.model), Path(folder))
        for number in range(args.rounds):
            for name, key in CONTENDERS.items():
                speeds[name].append(measure(args, key, folder))
                print(f"round {number + 1}: {name}: {speeds[name][-1]:.1f} tok/s", file=sys.stderr)
    return speeds


def measure(args: argparse.Namespace, key: str, folder: str) -> float:
    """One contender in a process of its own."""
    command = [sys.executable, __file__, "--only", key, "--folder", folder]
    command += ["--model", args.model, "--threads", str(args.threads)]
    run = subprocess.run(command, stdout=subprocess.PIPE, check=True)
    return float(json.loads(run.stdout.splitlines()[-1])["tokens_per_s"])


def report(args: argparse.Namespace, speeds: dict[str, list[float]]) -> None:
    """Markdown on stdout, and beside it JSON, under --out."""
    medians = {name: statistics.median(values) for name, values in speeds.items()}
    first, llama = medians["transformers fp32"], medians["llama.cpp, the GGUF itself"]
    about = {
        "date": datetime.date.today().isoformat(),
        "machine": f"{platform.processor() or platform.machine()}, {os.cpu_count()} cores",
        "threads": args.threads,
        "rounds": args.rounds,
        "tokens": TOKENS,
        "model": args.model,
    }
    lines = [
        f"{about}",
        "",
        "| | tok/s | × transformers fp32 | × llama.cpp | range |",
        "|---|---|---|---|---|",
    ]
    for name, value in medians.items():
        span = f"{min(speeds[name]):.1f} to {max(speeds[name]):.1f}"
        lines.append(f"| {name} | {value:.1f} | {value / first:.2f} | {value / llama:.2f} | {span} |")
    print("\n".join(lines))
    if args.out:
        args.out.with_suffix(".md").write_text("\n".join(lines) + "\n")
        args.out.with_suffix(".json").write_text(json.dumps({**about, "speeds": speeds}, indent=1) + "\n")


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


def speed_transformers(args: argparse.Namespace) -> float:
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
    return (TOKENS - 1) / (seconds(TOKENS) - seconds(1))


def speed_llama_cpp(args: argparse.Namespace) -> float:
    """llama.cpp on the GGUF file, greedy."""
    from llama_cpp import Llama

    model = Llama(str(source_of(args.model)), n_ctx=1024, n_threads=args.threads, verbose=False)
    model.eval(model.tokenize(PROMPT.encode()))
    return timed(lambda: model.eval([model.sample(temp=0.0)]))


def speed_int8(args: argparse.Namespace) -> float:
    """This project, the lossless INT8 layers."""
    return speed_of_engine(args, "int8", 0.0)


def speed_slider_0(args: argparse.Namespace) -> float:
    """This project, 4-bit base, no correction."""
    return speed_of_engine(args, "rtn4", 0.0)


def speed_slider_10(args: argparse.Namespace) -> float:
    """This project, 4-bit base, slider at 10 %."""
    return speed_of_engine(args, "rtn4", 10.0)


def speed_of_engine(args: argparse.Namespace, base: Any, slowdown: float) -> float:
    """Greedy decode through the engine; the slider must be tuned for a position above 0."""
    from runtime.worker import environment

    environment.prepare()
    import torch

    from runtime.engine.load import load_engine
    from runtime.progress import JobContext
    from runtime.protocol import Load
    from runtime.text.tokenizer import Tokenizer

    torch.set_num_threads(args.threads)
    loaded = load_engine(Load(args.model, base), JobContext.silent())
    if slowdown and not loaded.loaded.path:
        raise SystemExit(f"tune first: {loaded.loaded.untuned_reason}")
    engine = loaded.engine
    engine.set_slowdown(slowdown, False)
    prompt = Tokenizer.from_folder(loaded.folder).encode(PROMPT)
    logits = engine.prefill(prompt, lambda: None)

    def step() -> None:
        nonlocal logits
        logits = engine.decode(int(logits.argmax()))

    return timed(step)


if __name__ == "__main__":
    main()
