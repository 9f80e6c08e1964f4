"""`python -m dpbn.audit [runs]`: the whole audit to stdout; exit code 1 if anything is not as it must be."""

import sys

from dpbn.audit.suite import FULL, report

if __name__ == "__main__":
    runs = int(sys.argv[1]) if len(sys.argv) > 1 else FULL
    sys.exit(0 if report(runs, learn_runs=max(100, runs // 10)) else 1)
