"""Kinds of linear layers behind one interface."""
