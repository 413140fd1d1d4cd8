"""The machine that measures: its CPUs, its cgroups, how fast it is now."""
