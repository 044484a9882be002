from .build import write_report as write_report
