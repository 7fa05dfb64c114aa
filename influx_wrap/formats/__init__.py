"""Other people's files and ours: read and written, nothing decided."""
