"""Rows become images: templates, buildah, the lock and the manifest."""
