"""Talks to the worker process. Light by contract: imported by the front end, so no torch here."""

from runtime.client.blocking import run_job
from runtime.client.streaming import WorkerClient

__all__ = ["WorkerClient", "run_job"]
