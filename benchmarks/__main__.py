"""`python -m benchmarks [NAME …]`: run benchmarks and write benchmarks/results/."""

import importlib
import sys

NAMES = (
    "slots",
    "literal",
    "memory",
    "throughput",
    "load",
    "service",
    "postgres",
    "driver",
    "spark",
    "endless",
    "accuracy",
    "correlation",
    "cycles",
    "ablation",
    "sizes",
    "trace",
    "transitions",
    "peers-spending",
    "peers",
)


def main() -> None:
    chosen = sys.argv[1:] or NAMES
    for name in chosen:
        if name not in NAMES:
            print(f"Expected a benchmark out of {', '.join(NAMES)}; received {name!r}.", file=sys.stderr)
            sys.exit(2)
    for name in chosen:
        importlib.import_module(f"benchmarks.{name.replace('-', '_')}").main()


main()
