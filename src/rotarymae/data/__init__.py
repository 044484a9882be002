"""Data that ship with the library."""
