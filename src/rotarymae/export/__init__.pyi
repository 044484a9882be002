from .graph import Answers as Answers
from .graph import LightCurves as LightCurves
from .hub import push_folder as push_folder
from .onnx import Check as Check
from .onnx import check_program as check_program
from .onnx import export_program as export_program
from .onnx import make_program as make_program
from .onnx import write_test_table as write_test_table
