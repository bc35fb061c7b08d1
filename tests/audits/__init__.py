"""`make audit`: the long form of the audits of every mechanism, and how often the honest are called broken."""
