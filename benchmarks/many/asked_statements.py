"""What a piece of work asks of the database: statements, transactions, and tables read whole."""

from __future__ import annotations

import re
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from sqlalchemy import Connection, event, text

from dsresults.store import Store

WHOLE = re.compile(r"Seq Scan on (samples|turns|documents)\b")


@dataclass
class Asked:
    """Of one piece of work."""

    seconds: float = 0.0
    cpu_s: float = 0.0  # of this process
    transactions: int = 0
    statements: list[tuple[str, Any]] = field(default_factory=list)

    def whole_tables(self, store: Store) -> dict[str, str]:
        """Large tables that a statement can only read from end to end, and that statement.

        A small table is read whole because that is quicker; so the planner is told not to where
        there is any other way.
        """
        by_table: dict[str, str] = {}
        for statement, values in {entry[0]: entry for entry in self.statements}.values():
            if not statement.lstrip().upper().startswith(("SELECT", "UPDATE", "DELETE")):
                continue
            with store.database.reading() as connection:
                connection.execute(text("SET LOCAL enable_seqscan = off"))
                plan = connection.exec_driver_sql(f"EXPLAIN {statement}", values).scalars()
                for table in WHOLE.findall("\n".join(plan)):
                    by_table[table] = " ".join(statement.split())
        return by_table

    def counted(self) -> str:
        """Each kind of statement with its number, the most frequent first."""
        kinds = Counter(" ".join(statement.split()[:1]) for statement, _ in self.statements)
        return ", ".join(f"{count} {kind}" for kind, count in kinds.most_common())


@contextmanager
def asked(store: Store) -> Iterator[Asked]:
    """Write down what is asked inside the block, by this process."""
    engine, record = store.database.engine, Asked()

    def statement(_c: Any, _k: Any, sql: str, values: Any, _x: Any, many: bool) -> None:  # noqa: ANN401, FBT001
        record.statements.append((sql, values[0] if many else values))

    def begun(connection: Connection) -> None:
        # SQLAlchemy says that it begins where nothing is sent, too
        asked_alone = connection.get_execution_options().get("isolation_level") == "AUTOCOMMIT"
        record.transactions += not asked_alone

    event.listen(engine, "before_cursor_execute", statement)
    event.listen(engine, "begin", begun)
    begin, begin_cpu = time.perf_counter(), time.process_time()
    try:
        yield record
    finally:
        record.seconds = time.perf_counter() - begin
        record.cpu_s = time.process_time() - begin_cpu
        event.remove(engine, "before_cursor_execute", statement)
        event.remove(engine, "begin", begun)
