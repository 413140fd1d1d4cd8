"""The names of Dogtag's client library, which a server without a certificate authority imports.

Placed as the package `pki`: each module of it has every name that anybody asks for.
"""

from __future__ import annotations

import importlib.abc
import importlib.machinery
import sys
import types
from collections.abc import Sequence


class AnyNames(types.ModuleType):
    """A module that makes a class of every name."""

    def __getattr__(self, name: str) -> type:
        if name.startswith("__"):
            raise AttributeError(name)
        return type(name, (Exception if name.endswith("Exception") else object,), {})


class Modules(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Finds every module below `pki`."""

    def find_spec(
        self, name: str, path: Sequence[str] | None, target: types.ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        del path, target
        below = name.startswith("pki.")
        return importlib.machinery.ModuleSpec(name, self, is_package=True) if below else None

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> types.ModuleType:
        return AnyNames(spec.name)

    def exec_module(self, module: types.ModuleType) -> None:
        """Leave it empty: its names are made when they are asked for."""


sys.meta_path.append(Modules())
__path__: list[str] = []
__getattr__ = AnyNames(__name__).__getattr__
