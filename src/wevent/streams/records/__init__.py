"""One line, one record: split, decoded and checked, whatever file or pipe it came from."""
