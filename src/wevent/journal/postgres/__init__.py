"""A journal in a schema of a PostgreSQL database, with a folder of side files outside it."""
