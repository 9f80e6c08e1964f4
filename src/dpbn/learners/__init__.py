"""Learners: one method per file, over shared parts. None of them sees a private count.

Constants that nothing derives were chosen by the errors on published networks: `docs/tried.md` says on which, what else
was tried, and what it cost.
"""
