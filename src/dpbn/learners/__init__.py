"""Learners: one method per file, over shared parts. None of them sees a private count."""
