"""Events of files, a range of slots at a time; and the operator's own small files."""
