"""`python -m wevent`."""

from wevent.cli import main

main()
