"""The lab: candidates become samples, in the one loop."""
