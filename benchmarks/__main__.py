"""``python -m benchmarks``: speed and memory against PyTorch. Options as benchmarks/speed.py."""

from benchmarks.speed import main

main()
