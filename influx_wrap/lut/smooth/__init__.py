"""The lens as one smooth thing: a Gaussian process over zoom and focus."""
