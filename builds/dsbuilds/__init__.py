"""Builds made from a source: any commit or package, patched, cached."""
