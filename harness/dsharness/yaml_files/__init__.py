"""YAML files that people write: read with the line of every key, checked against a model."""
