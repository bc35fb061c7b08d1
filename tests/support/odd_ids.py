"""Ids that a text format, a query or a sort order could take for something else."""

ODD_IDS = (
    '"',
    "\\",
    "\\.",
    "\\N",
    "\x01",
    "\x7f",
    " ",
    'a"b\\c\td',
    "é",
    "\u2028",
    "\uffff",
    "😀",
    "e\u0301",
    "7",
    "007",
    "Z",
)
