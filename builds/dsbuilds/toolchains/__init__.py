"""What a tree needs to be built, and an image that has it."""
