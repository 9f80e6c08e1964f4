"""Randomness, accounting and the ledger: the only folder that draws noise."""
