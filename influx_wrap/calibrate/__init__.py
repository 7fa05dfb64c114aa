"""Observations in, intrinsics with an honest uncertainty out."""
