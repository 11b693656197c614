"""INT8-X models on disk: lossless INT8 in safetensors."""

from runtime.int8x.choice import CodecChoice
from runtime.int8x.origin import fingerprint
from runtime.int8x.reader import Int8xReader
from runtime.int8x.writer import Int8xWriter

__all__ = ["CodecChoice", "Int8xReader", "Int8xWriter", "fingerprint"]
