"""Frames to intrinsics by other people's methods, for the benchmark to judge."""
