"""Fields whose values the products add: a model with one is built when it is first used."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import reduce
from operator import or_
from typing import Annotated, Any

from pydantic import Field, GetCoreSchemaHandler
from pydantic_core import CoreSchema, core_schema

from dsharness.model.value import Value
from dsharness.product_folder import ProductFolder, product_folders


class OneOf:
    """Marks a field that holds a value of any product, told apart by one of its words."""

    def __init__(
        self, word: str, take: Callable[[ProductFolder], Iterable[type[Value]]], *own: type[Value]
    ) -> None:
        self._word, self._take, self._own = word, take, own

    def __get_pydantic_core_schema__(
        self, source: object, handler: GetCoreSchemaHandler
    ) -> CoreSchema:
        """Make it of what the products add."""
        del source
        added = (kind for folder in product_folders().values() for kind in self._take(folder))
        kinds: Any = reduce(or_, (*self._own, *added))
        return handler.generate_schema(Annotated[kinds, Field(discriminator=self._word)])


class AnySystem:
    """Marks a field that holds the name of a driver of any product."""

    def __get_pydantic_core_schema__(
        self, source: object, handler: GetCoreSchemaHandler
    ) -> CoreSchema:
        """Take the words that there are."""
        del source, handler
        added = (name for folder in product_folders().values() for name in folder.systems)
        return core_schema.literal_schema(sorted(added))
