"""Which tags of a repository can be built, started and measured, with each toolchain that fits."""
