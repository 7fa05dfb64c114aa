"""A whole lens: from footage or a simulation to its results, its table and its page."""
