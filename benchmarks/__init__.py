"""How fast this package is, beside others, in one run on one machine: `python -m benchmarks.run`."""
