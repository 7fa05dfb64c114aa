"""How work is done: processes, clusters, compiled kernels, and the arithmetic they share."""
