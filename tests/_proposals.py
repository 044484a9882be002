"""What a proposal says of a table, for tests."""

from typing import Any


def doubts_of(proposal: Any) -> list[str]:
    """Return what is doubtful about a table as a whole, and about each column: "'flag': a flag?"."""
    return [*proposal.unsure, *(f"{name!r}: {remark}" for name, remark in proposal.remarks.items())]
