"""Learn from irregular observations, images, video and audio with one model: the Rotary Masked Autoencoder."""

import lazy_loader

__version__ = "0.1.0"

# What users import, loaded on first use: `import rotarymae` costs little, and the command's --help too.
__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
