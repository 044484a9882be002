"""One self-contained page per run."""

from rotarymae.report.build import write_report
from rotarymae.report.explore import write_explorer

__all__ = ["write_explorer", "write_report"]
