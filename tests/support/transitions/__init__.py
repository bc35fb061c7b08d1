"""Random lives of users who change their requirement, an accountant that reads no ledger, and disabled rules (spec 15)."""
