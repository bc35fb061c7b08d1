"""The parts of `pft`: pure post-processing of releases, and policies whose offers go through the ledger as all others."""
