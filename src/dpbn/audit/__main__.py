"""`python -m dpbn.audit [runs]`: the whole audit to stdout; exit code 1 if anything is not as it must be."""

import sys

from dpbn.audit.suite import report

if __name__ == "__main__":
    sys.exit(0 if report(int(sys.argv[1]) if len(sys.argv) > 1 else 200_000) else 1)
