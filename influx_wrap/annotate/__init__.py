"""Lens metadata of a clip to the intrinsics of every frame."""
