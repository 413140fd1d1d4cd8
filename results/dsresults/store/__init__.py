"""The store: what was asked, measured and answered, kept as soon as it exists."""

from dsresults.store.json_lines import Imported
from dsresults.store.location import default_location
from dsresults.store.store import Store

__all__ = ["Imported", "Store", "default_location"]
