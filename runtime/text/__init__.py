"""Text on both sides of the model: prompts in, streamed characters out. Knows token ids, not tensors."""

from runtime.text.detokenizer import Detokenizer
from runtime.text.prompt import Prompt, PromptBuilder
from runtime.text.stops import StopMatcher
from runtime.text.tokenizer import Tokenizer

__all__ = ["Detokenizer", "Prompt", "PromptBuilder", "StopMatcher", "Tokenizer"]
