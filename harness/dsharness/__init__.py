"""The kernel of the lab: vocabulary, matrix, containers, instances and measurement."""
