"""`python -m dpbn` is the command line."""

from dpbn.cli import script

script()
