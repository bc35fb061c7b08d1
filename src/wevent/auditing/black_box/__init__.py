"""The audit from outside: runs on neighbouring streams, of which it sees what everybody sees, and an exact bound."""
