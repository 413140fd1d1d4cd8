"""YAML text to plain data that remembers its lines, bounded before anything is built.

The composer of the YAML library calls itself once per level, and aliases unfold to any size;
so the events are checked before it begins, and the unfolding is counted.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path

from ruamel.yaml import YAML
from ruamel.yaml.error import MarkedYAMLError, YAMLError
from ruamel.yaml.events import (
    MappingEndEvent,
    MappingStartEvent,
    NodeEvent,
    SequenceEndEvent,
    SequenceStartEvent,
)
from ruamel.yaml.nodes import MappingNode, Node, ScalarNode, SequenceNode
from ruamel.yaml.reader import ReaderError

from dsharness.errors import MatrixError
from dsharness.guarded_files import regular_file
from dsharness.yaml_files.problems import KeyPath, KeyPlace, Problem

TAG = "tag:yaml.org,2002:"
MAX_DEPTH = 16  # matrix.yaml itself needs 6
MAX_NODES = 20_000  # the matrix of every tagged release would have about 3,000


def check_bounds(where: str, depth: int, nodes: int) -> None:
    """Refuse what no matrix needs, before it costs stack or memory."""
    if depth > MAX_DEPTH:
        raise MatrixError(
            f"{where}: nested more than {MAX_DEPTH} deep: a matrix needs 6 levels",
            hint="look for brackets that are not closed, or an alias that contains itself",
        )
    if nodes > MAX_NODES:
        raise MatrixError(
            f"{where}: more than {MAX_NODES} values, aliases counted: a matrix has a few thousand",
            hint="look for aliases of aliases, or split the matrix",
        )


class NodeReader:
    """Unfolds the composed nodes, counting what each alias adds."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.places: dict[KeyPath, KeyPlace] = {}
        self.findings: list[Problem] = []
        self._nodes = 0

    def document(self, root: MappingNode) -> dict[str, object]:
        """Return all of a file; what is wrong with it is in ``findings``."""
        self._nodes = 1
        self.places[()] = KeyPlace(line=0, text=None)
        return self._mapping(root, ())

    def _read(self, node: Node, path: KeyPath, line: int) -> object:
        self._nodes += 1
        check_bounds(f"{self.path}:{line}", len(path), self._nodes)
        text = node.value if isinstance(node, ScalarNode) else None
        self.places[path] = KeyPlace(line=line, text=text)
        if isinstance(node, MappingNode):
            return self._mapping(node, path)
        if isinstance(node, SequenceNode):
            return [
                self._read(item, (*path, index), item.start_mark.line + 1)
                for index, item in enumerate(node.value)
            ]
        return self._scalar(node, path, line)

    def _mapping(self, node: MappingNode, path: KeyPath) -> dict[str, object]:
        data: dict[str, object] = {}
        for key, value in node.value:
            line = key.start_mark.line + 1
            if not isinstance(key, ScalarNode):
                self._find(path, line, None, "a list or mapping as a key; only a word is allowed")
            elif key.value in data:
                first = self.places[(*path, key.value)].line
                self._find((*path, key.value), line, None, f"a second time; first in line {first}")
            else:
                data[key.value] = self._read(value, (*path, key.value), line)
        return data

    def _scalar(self, node: Node, path: KeyPath, line: int) -> str | float | bool | None:
        text: str = node.value
        try:
            match str(node.tag).removeprefix(TAG):
                case "null":
                    return None
                case "bool":
                    return text.lower() == "true"
                case "int":
                    return int(text)
                case "float":
                    return float(text)
                case "str":
                    return text
        except ValueError:
            # YAML's other ways to write a number (0o17, .inf) have no use here
            allowed = "a number in plain digits; text is quoted"
        else:
            allowed = "not plain text; quote it"
        self._find(path, line, text, f'{allowed}: "{text[:60]}"')
        return text

    def _find(self, path: KeyPath, line: int, value: str | None, allowed: str) -> None:
        self.findings.append(Problem(path=path, line=line, value=value, allowed=allowed))


MAX_BYTES = 256 * 1024


@dataclass(frozen=True, kw_only=True)
class Document:
    """Plain data, the place of each key path, and what was wrong with the text itself."""

    path: Path
    data: dict[str, object]
    places: dict[KeyPath, KeyPlace] = field(default_factory=dict)
    findings: tuple[Problem, ...] = ()


def read_document(path: Path, *, hint: str, unread: str = "name a readable file") -> Document:
    """Return the document of a file; MatrixError when it is no YAML mapping of a sane size.

    ``hint`` says what such a file may hold, ``unread`` what to do if there is none.
    """
    text = _read_text(path, unread)
    try:
        root = _composed(str(path), text)
    except MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        line = f":{mark.line + 1}" if mark is not None else ""
        reason = " ".join(text for text in (error.context, error.problem) if text)
        raise MatrixError(
            f"{path}{line}: not YAML: {reason}",
            hint=f"an editor that knows YAML shows the place; {hint}",
        ) from error
    except ReaderError as error:
        number = text.count("\n", 0, error.position) + 1
        character = f"U+{ord(text[error.position]):04X}"
        raise MatrixError(
            f"{path}:{number}: not YAML: the character {character} is not allowed",
            hint="an editor that shows control characters shows the place",
        ) from error
    except YAMLError as error:
        raise MatrixError(f"{path}: not YAML: {error}".splitlines()[0]) from error
    if not isinstance(root, MappingNode):
        root_kind = "nothing" if root is None else f"a {root.id}"
        raise MatrixError(
            f"{path}: {root_kind} at the top level: only a mapping is allowed", hint=hint
        )
    reader = NodeReader(path)
    data = reader.document(root)
    return Document(path=path, data=data, places=reader.places, findings=tuple(reader.findings))


@lru_cache(maxsize=16)  # of a command: the matrix and the product files are asked for several times
def _composed(where: str, text: str) -> MappingNode | SequenceNode | ScalarNode | None:
    try:
        return _composed_by(YAML(typ="safe"), where, text)
    except YAMLError:  # the parser in C, ten times as fast, refuses {key: https://...}
        return _composed_by(YAML(typ="safe", pure=True), where, text)


def _composed_by(
    yaml: YAML, where: str, text: str
) -> MappingNode | SequenceNode | ScalarNode | None:
    """Follow the events first, which cost no stack and no tree, and stop at the first excess."""
    depth = nodes = 0
    for event in yaml.parse(text):
        nodes += isinstance(event, NodeEvent)
        depth += isinstance(event, MappingStartEvent | SequenceStartEvent)
        depth -= isinstance(event, MappingEndEvent | SequenceEndEvent)
        check_bounds(f"{where}:{event.start_mark.line + 1}", depth, nodes)
    root: MappingNode | SequenceNode | ScalarNode | None = yaml.compose(text)
    return root


def _read_text(path: Path, unread: str) -> str:
    try:
        with regular_file(path) as stream:
            raw = stream.read(MAX_BYTES + 1)
    except OSError as error:
        raise MatrixError(
            f"{path}: cannot be read: {error.strerror or error}", hint=unread
        ) from error
    if len(raw) > MAX_BYTES:
        raise MatrixError(f"{path}: more than {MAX_BYTES} bytes: a matrix is smaller than that")
    try:
        return raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = raw.count(b"\n", 0, error.start) + 1
        raise MatrixError(
            f"{path}:{line}: byte 0x{raw[error.start]:02x} is not UTF-8: only UTF-8 is allowed",
            hint="save the file as UTF-8",
        ) from error
