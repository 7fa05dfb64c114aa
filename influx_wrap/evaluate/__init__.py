"""How good intrinsics are."""
