"""Figures of what the pipeline planned and found."""
