"""All experiments, by name."""

from __future__ import annotations

from cida.benchmarks.recipes import Benchmark
from cida.benchmarks.rotating import ROTATING_DIGITS, ROTATING_MNIST
from cida.benchmarks.toys import CIRCLE, SINE

__all__ = ["BENCHMARKS"]

BENCHMARKS: dict[str, Benchmark] = {
    benchmark.name: benchmark for benchmark in (CIRCLE, SINE, ROTATING_MNIST, ROTATING_DIGITS)
}
