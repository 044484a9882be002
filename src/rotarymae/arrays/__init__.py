"""Arrays on regular axes in, tokens out: pictures, videos and sounds, of equal or unequal sizes."""

import lazy_loader

# What others use, loaded on first use; the names stand in __init__.pyi.
__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
