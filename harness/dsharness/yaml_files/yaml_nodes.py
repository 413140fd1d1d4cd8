"""The nodes of a YAML document as plain data, with the place of every key path."""

from __future__ import annotations

from pathlib import Path

from ruamel.yaml.nodes import MappingNode, Node, ScalarNode, SequenceNode

from dsharness.errors import MatrixError
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
        """All of a file; what is wrong with it is in ``findings``."""
        self._nodes = 1
        self.places[()] = KeyPlace(line=0, text=None)
        return self._mapping(root, ())

    def _read(self, node: Node, at: KeyPath, line: int) -> object:
        self._nodes += 1
        check_bounds(f"{self.path}:{line}", len(at), self._nodes)
        text = node.value if isinstance(node, ScalarNode) else None
        self.places[at] = KeyPlace(line=line, text=text)
        if isinstance(node, MappingNode):
            return self._mapping(node, at)
        if isinstance(node, SequenceNode):
            return [
                self._read(item, (*at, index), item.start_mark.line + 1)
                for index, item in enumerate(node.value)
            ]
        return self._scalar(node, at, line)

    def _mapping(self, node: MappingNode, at: KeyPath) -> dict[str, object]:
        data: dict[str, object] = {}
        for key, value in node.value:
            line = key.start_mark.line + 1
            if not isinstance(key, ScalarNode):
                self._find(at, line, None, "a list or mapping as a key; only a word is allowed")
            elif key.value in data:
                first = self.places[(*at, key.value)].line
                self._find((*at, key.value), line, None, f"a second time; first in line {first}")
            else:
                data[key.value] = self._read(value, (*at, key.value), line)
        return data

    def _scalar(self, node: Node, at: KeyPath, line: int) -> str | float | bool | None:
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
            pass  # YAML's other ways to write a number (0o17, .inf) have no use here
        self._find(at, line, text, f'not plain text; quote it: "{text[:60]}"')
        return text

    def _find(self, at: KeyPath, line: int, value: str | None, allowed: str) -> None:
        self.findings.append(Problem(path=at, line=line, value=value, allowed=allowed))
