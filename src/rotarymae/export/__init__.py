"""Models for others: as one file that runs without this library, and on the Hugging Face Hub."""

from rotarymae.export.graph import Answers, LightCurves
from rotarymae.export.onnx import Check, check_program, export_program, make_program, write_test_table

__all__ = [
    "Answers",
    "Check",
    "LightCurves",
    "check_program",
    "export_program",
    "make_program",
    "write_test_table",
]
