"""Who holds which requirement since when: memberships, the hold-out, restores. Pure: no input, no output, no clock."""
