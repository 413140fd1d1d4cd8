"""What of a repository's tags can be built, started and bound to, with each toolchain that fits."""
