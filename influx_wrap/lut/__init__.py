"""Tables over a lens: regions, interpolation, extrapolation, cross-validation."""
