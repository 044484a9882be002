"""What this library raises, so that callers can tell its refusals from a bug."""


class RotaryMAEError(Exception):
    """Base of everything this library raises on purpose."""


class InputError(RotaryMAEError, ValueError):
    """A table, array, setting or label that cannot be used; the message says what to do."""


class ModelDirectoryError(RotaryMAEError):
    """A model directory or checkpoint that is incomplete, damaged or of another kind."""


class InputWarning(UserWarning):
    """Input that was repaired or looks unlike the training data; the message says how."""
