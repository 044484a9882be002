"""What was measured, how, and against what: `python -m benchmarks`, which is `make bench`."""
