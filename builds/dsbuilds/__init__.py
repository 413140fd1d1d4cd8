"""From a source to a build: any commit or package, patched, cached."""
