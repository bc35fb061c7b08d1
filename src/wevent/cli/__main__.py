"""`python -m wevent.cli`."""

from wevent.cli import main

main()
