"""The search that understands noise: certain, cheap, honest about "none". Pure."""
