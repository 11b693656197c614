"""How long a server may take, and how much it may send."""

CONNECT_S = 10.0
# For a list of models: for its next piece, and for all of it.
SHORT_S = 20.0
LIST_S = 60.0
# Before its first word a server may load a model and read a long prompt.
SILENCE_S = 600.0
# For counts, when the text is whole.
LINGER_S = 5.0

MAX_EVENT_BYTES = 1 << 20
MAX_DOCUMENT_BYTES = 8 << 20
MAX_ERROR_BYTES = 64 << 10
MAX_ANSWER_CHARS = 4 << 20
