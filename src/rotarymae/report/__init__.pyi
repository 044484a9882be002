from .build import write_report as write_report
from .explore import write_explorer as write_explorer
