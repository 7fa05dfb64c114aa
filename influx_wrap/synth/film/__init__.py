"""Simulated experiments and clips as footage: a board, a drone's night, a zooming clip."""
