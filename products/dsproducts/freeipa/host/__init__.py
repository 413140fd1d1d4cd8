"""What stands in the place of a host's programs while FreeIPA is installed without them."""
