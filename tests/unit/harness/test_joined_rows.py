"""A matrix together with the rows of products that have their own."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from dsharness.errors import MatrixError
from dsharness.matrix import load_matrix
from dsharness.matrix.joined_rows import FILE
from dsharness.model import Matrix
from dsharness.product_folder import product_folders

WHOLE = (Path(__file__).parents[3] / "matrix.yaml").read_text(encoding="utf-8")
OWN = product_folders()["krb5"].folder / FILE


def matrix_of(folder: Path, products: str, *changes: tuple[str, str]) -> Matrix:
    text = re.sub(r"^products: .*$", f"products: [{products}]", WHOLE, flags=re.MULTILINE)
    for old, new in changes:
        text = text.replace(old, new)
    (folder / "matrix.yaml").write_text(text)
    return load_matrix(folder / "matrix.yaml")


def line_of(text: str) -> int:
    return OWN.read_text(encoding="utf-8").splitlines().index(text) + 1


def test_rows_of_a_product_come_after_those_of_the_matrix(tmp_path: Path) -> None:
    alone, more = matrix_of(tmp_path, ""), matrix_of(tmp_path, "krb5")
    assert more.rows[: len(alone.rows)] == alone.rows
    assert more.rows[len(alone.rows)].id == "debian-11-krb5"
    assert {one.id for one in more.series} - {one.id for one in alone.series} == {"krb5"}
    assert more.tools.loads == alone.tools.loads | {"krbload": "debian-13"}
    assert set(more.defaults.suite) - set(alone.defaults.suite) == {
        "kerberos-as",
        "kerberos-preauth",
    }


def test_what_is_wrong_in_them_is_told_with_their_own_file(tmp_path: Path) -> None:
    with pytest.raises(MatrixError) as twice:
        matrix_of(tmp_path, "krb5", ("id: debian-12\n", "id: debian-12-krb5\n"))
    line = line_of("  - id: debian-12-krb5")
    assert re.search(
        rf"{re.escape(str(OWN))}:{line}: rows\[\d+\].id: value 'debian-12-krb5': already the id",
        twice.value.message,
    )


def test_what_they_need_of_the_matrix_must_be_there(tmp_path: Path) -> None:
    with pytest.raises(MatrixError) as lacking:
        matrix_of(tmp_path, "krb5", ("id: debian-13\n", "id: debian-14\n"))
    assert f"{OWN}:3: tools.loads.krbload: value 'debian-13': no such id" in lacking.value.message


def test_a_product_without_rows_of_its_own_is_none_of_a_matrix(tmp_path: Path) -> None:
    with pytest.raises(MatrixError) as unknown:
        matrix_of(tmp_path, "krb6")
    text = unknown.value.message
    assert "products[0]: value 'krb6': no such product with a rows.yaml" in text
    assert "Perhaps you meant 'krb5'." in text
