"""The way from an image to a sample: golden state, instance, run, gate, duet."""
