"""The nouns of the pipeline: pure maths on arrays, no files."""
