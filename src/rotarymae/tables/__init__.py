"""Tables as people have them: what each column is, read from any kind of file or frame into a `SeriesDataset`."""

import lazy_loader

# What others use, loaded on first use; the names stand in __init__.pyi.
__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
