"""The speed suite: how fast cida is on this machine, each figure with its limit.

``python -m benchmarks`` measures and prints; ``make speed`` also writes docs/performance.md.
``python -m benchmarks.count_lines`` counts the lines of the package. Nothing here is installed.
"""
