"""Textual front end and command line. Never imports torch, triton or transformers."""
