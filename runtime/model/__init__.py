"""The Llama-family decoder."""
