"""Words from outside the matrix that reach a build: of an environment, of a container."""

from __future__ import annotations

from pydantic import TypeAdapter, ValidationError

from dsharness.errors import MatrixError


def checked(form: TypeAdapter[str], word: str, where: str) -> str:
    """The word itself when it has the form, one of the model's, else an error that shows it."""
    try:
        return form.validate_python(word)
    except ValidationError as error:
        reason = error.errors(include_url=False)[0]["msg"]
        raise MatrixError(
            f"{where}: {word!r}: {reason}", hint="correct it where it is set"
        ) from error
