"""The ledger of a Whoosh index: marks, and the numbers that stand for logs and roles in documents.

There is one for each generation of the index, written before the table of contents that makes the
generation count: a process that dies in between leaves a ledger that the next one writes over.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

import orjson

from workspace_session.files.atomic import write_atomic
from workspace_session.search.engine import Log, Mark

_NAME = "ledger-{}.json"


@dataclass(slots=True)
class Ledger:
    """What is known of the logs as of one generation."""

    marks: dict[Log, Mark] = field(default_factory=dict)
    numbers: dict[Log, int] = field(default_factory=dict)
    roles: list[str] = field(default_factory=list)
    next_number: int = 0  # numbers are not used again: documents of a log that is gone may have one

    @classmethod
    def read(cls, directory: Path, generation: int) -> Ledger:
        """The ledger of a generation."""
        found = orjson.loads(_path(directory, generation).read_bytes())
        ledger = cls(roles=found["roles"], next_number=found["next"])
        for agent, session, number, *mark in found["logs"]:
            ledger.numbers[Log(agent, session)] = number
            ledger.marks[Log(agent, session)] = Mark(*mark)
        return ledger

    def write(self, directory: Path, generation: int) -> None:
        """Write it down for a generation that is about to be."""
        logs = [[*log, self.numbers[log], *mark] for log, mark in self.marks.items()]
        found = {"roles": self.roles, "next": self.next_number, "logs": logs}
        write_atomic(_path(directory, generation), orjson.dumps(found), sync=False)

    def copy(self) -> Ledger:
        """One to be changed."""
        return Ledger(dict(self.marks), dict(self.numbers), list(self.roles), self.next_number)

    def set_mark(self, log: Log, mark: Mark | None) -> int:
        """Set a log's mark, or strike the log out; returns its number."""
        number = self.numbers.get(log)
        if number is None:
            number, self.next_number = self.next_number, self.next_number + 1
        if mark is None:
            self.marks.pop(log, None)
            self.numbers.pop(log, None)
        else:
            self.marks[log], self.numbers[log] = mark, number
        return number

    def role_number(self, role: str) -> int:
        """The number of a role; a new one gets one."""
        if role not in self.roles:
            self.roles.append(role)
        return self.roles.index(role)

    def known_role(self, role: str) -> int:
        """The number of a role; -1 for one that no document has."""
        return self.roles.index(role) if role in self.roles else -1


def remove_others(directory: Path, generation: int) -> None:
    """Remove the ledgers of generations that count no more."""
    keep = _path(directory, generation)
    for path in directory.glob(_NAME.format("*")):
        if path != keep:
            path.unlink(missing_ok=True)


def _path(directory: Path, generation: int) -> Path:
    return directory / _NAME.format(generation)
