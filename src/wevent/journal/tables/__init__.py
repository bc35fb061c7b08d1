"""Journals in tables: the rules, and the SQL that SQLite and PostgreSQL share."""
