"""Readers of benchmark sets and generators of synthetic ones, one file per data set."""
