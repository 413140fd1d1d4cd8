"""The image with tools that look at packages and servers: lintian, abidiff, ldap3, valgrind."""

from __future__ import annotations

from collections.abc import Callable

from dsbuilds.toolchains.toolchain_choice import named
from dsbuilds.toolchains.toolchain_image import ToolchainImage, toolset_of
from dsharness.containers.engine import Engine
from dsharness.errors import MatrixError
from dsharness.model import Matrix


def check_tools(
    engine: Engine, matrix: Matrix, *, progress: Callable[[str], None]
) -> ToolchainImage:
    """Found, or made now; MatrixError if the matrix names none."""
    name = matrix.tools.checks
    if name is None:
        raise MatrixError(
            "the matrix names no toolchain that looks at packages and servers",
            hint="name one as `tools: checks:`; docs/matrix.md",
        )
    return toolset_of(engine, matrix, named(name, matrix.toolchains), progress=progress)
