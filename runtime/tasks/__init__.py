"""Evaluations by answers: BIG-Bench Hard, MT-Bench, and a judge that grades them."""
