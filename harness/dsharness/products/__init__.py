"""What the lab knows of each program that it measures: a folder of YAML files for each product."""

from __future__ import annotations

from dsharness.products.catalog import (
    build_needs_file,
    known_changes,
    notable_versions,
    product,
    product_file,
    product_ids,
    product_of,
    product_of_source,
    release_files,
    seen_builds,
    seen_of_source,
    source_facts,
    source_system,
    version_of_source,
    why_no_source,
)
from dsharness.products.product import Product, ProductPackages, ProductSuite, SourceFacts

__all__ = [
    "Product",
    "ProductPackages",
    "ProductSuite",
    "SourceFacts",
    "build_needs_file",
    "known_changes",
    "notable_versions",
    "product",
    "product_file",
    "product_ids",
    "product_of",
    "product_of_source",
    "release_files",
    "seen_builds",
    "seen_of_source",
    "source_facts",
    "source_system",
    "version_of_source",
    "why_no_source",
]
