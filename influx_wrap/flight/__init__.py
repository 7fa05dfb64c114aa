"""A drone's recording: flashes and readings matched, reviewed, turned into an experiment."""
