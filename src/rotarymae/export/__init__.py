"""Models for others: as one file that runs without this library."""

from rotarymae.export.graph import Program
from rotarymae.export.onnx import export_program, make_program

__all__ = ["Program", "export_program", "make_program"]
