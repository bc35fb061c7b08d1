"""The process that strace watches: a command, of the program as it is or of a wrong variant of it."""

import sys

from tests.fault.campaign.wrong import VARIANTS
from wevent.cli import main

if __name__ == "__main__":
    VARIANTS[sys.argv[1]]()
    main(sys.argv[2:])
