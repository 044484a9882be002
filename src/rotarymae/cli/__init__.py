"""The command `rotarymae`."""
