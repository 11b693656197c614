"""Types exchanged with the worker process: commands in, events out, one JSON document per line.

Light by contract: imported by the front end, so no torch, transformers or triton here.
"""

from runtime.protocol.commands import (
    Command,
    Generate,
    Job,
    Load,
    Message,
    Prepare,
    Quit,
    Sampling,
    SetSlowdown,
    Stop,
    Tune,
)
from runtime.protocol.events import (
    Done,
    Event,
    Failed,
    KChunk,
    Loaded,
    Progress,
    Ready,
    SlowdownPoint,
    Stats,
    Token,
)
from runtime.protocol.lines import decode_command, decode_event, encode

__all__ = [
    "Command",
    "Done",
    "Event",
    "Failed",
    "Generate",
    "Job",
    "KChunk",
    "Load",
    "Loaded",
    "Message",
    "Prepare",
    "Progress",
    "Quit",
    "Ready",
    "Sampling",
    "SetSlowdown",
    "SlowdownPoint",
    "Stats",
    "Stop",
    "Token",
    "Tune",
    "decode_command",
    "decode_event",
    "encode",
]
