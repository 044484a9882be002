"""One self-contained page per run."""

from rotarymae.report.build import write_report

__all__ = ["write_report"]
