"""Which function does which job. Named as strings, so that a worker imports only what it is asked for."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any

import msgspec

from runtime.errors import DecdecError
from runtime.progress import JobContext
from runtime.protocol.commands import Job, Prepare, Tune

JobFunction = Callable[[dict[str, Any], JobContext], dict[str, Any]]

LOADER = "runtime.engine.load:load_engine"
JOBS = {
    "prepare": "runtime.prepare.pipeline:prepare_job",
    "tune": "runtime.tuner.jobs:tune",
    "int8x_encode": "runtime.int8x.jobs:encode",
    "int8x_verify": "runtime.int8x.jobs:verify",
    "int8x_inspect": "runtime.int8x.jobs:inspect",
    "export": "runtime.export.jobs:export",
    "eval_ppl": "runtime.evaluate.jobs:ppl",
    "eval_bbh": "runtime.tasks.bbh:bbh",
    "eval_mt_bench": "runtime.tasks.mt_bench:mt_bench",
    "eval_judge": "runtime.tasks.judge:judge",
    "bench_tables": "runtime.bench.jobs:tables",
    "bench_decdec": "runtime.bench.dec_tables:decdec",
    "bench_int8x": "runtime.bench.jobs:int8x",
    "bench_kernels": "runtime.bench.dec_jobs:kernels",
    "bench_decode": "runtime.bench.decode.jobs:decode",
    "doctor": "runtime.doctor:doctor",
    "hub_search": "runtime.sources.hub_search:search",
    "model_details": "runtime.details.jobs:details",
    "check_files": "runtime.details.jobs:check_files",
}


def resolve(target: str) -> Any:
    """The function behind `module:function`."""
    module, _, name = target.partition(":")
    return getattr(importlib.import_module(module), name)


def find(name: str) -> JobFunction:
    """A job by name; raises DecdecError for an unknown one."""
    if name not in JOBS:
        raise DecdecError(f"There is no job named {name!r}", f"known are {', '.join(sorted(JOBS))}", code=2)
    function: JobFunction = resolve(JOBS[name])
    return function


def call(command: Prepare | Tune | Job) -> tuple[str, dict[str, Any]]:
    """A command's job name and arguments."""
    if isinstance(command, Job):
        return command.name, command.args
    arguments = msgspec.to_builtins(command)
    return arguments.pop("type"), arguments
