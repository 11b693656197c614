"""A decode step whose kernels only note how they were started: what differs is compiled by itself."""

from runtime.engine.gpu import step
from runtime.layers import device_linear


class Recorder:
    """started: what tells kernels apart, of every kernel since `clear`."""

    def __init__(self, monkeypatch):
        self.started = []
        for name in ("multiply_prepared", "prepare", "add_correction", "gate_corrected"):
            monkeypatch.setattr(device_linear, name, getattr(self, name))
        for name in ("decode_attention", "embed_token", "choose_token", "add_normed"):
            monkeypatch.setattr(step, name, getattr(self, name))

    def run(self, calls):
        """What the calls start."""
        self.started.clear()
        for call in calls:
            call()
        return list(self.started)

    def multiply_prepared(self, weights, prepared, out, fetch, config, epilogue):
        form = (type(weights), getattr(weights, "bits", None), weights.rows, weights.columns)
        self.started.append(("product", form, fetch and fetch.config, epilogue.add))
        return out

    def prepare(self, x, *, norm, eps, up, gelu, factors, selection, out, extras):
        kind = (norm is not None, up is not None, gelu, factors is not None)
        self.started.append(("prepare", x.numel(), kind, selection is not None))
        return out

    def add_correction(self, out, fetch):
        self.started.append(("add", out.numel(), fetch.config.splits))
        return out

    def gate_corrected(self, out, fetch, gated, *, gelu):
        self.started.append(("gate", out.numel(), fetch.config.splits, gelu))
        return gated

    def decode_attention(self, *args, correction, **options):
        self.started.append(("attention", correction and correction.config.splits))

    def embed_token(self, *args, **options):
        self.started.append(("embed",))

    def choose_token(self, *args):
        self.started.append(("choose",))

    def add_normed(self, *args):
        self.started.append(("post norm",))
