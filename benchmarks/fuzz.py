"""Coverage-guided fuzzing of every reader (atheris): `python benchmarks/fuzz.py [seconds per reader]`.

Each reader runs in a process of its own, with a limit on memory and on the time of one input. An error that is not
typed, an assertion, more than a second or 512 MB for inputs of at most 64 KB stops it and is reported.
"""

from __future__ import annotations

import re
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "src")]
LARGEST = 1 << 16


def fuzz_one(name: str, seconds: int, corpus: str) -> None:
    import atheris

    with atheris.instrument_imports(
        include=["dpbn.formats", "dpbn.release", "dpbn.workload", "dpbn.data", "json", "tomllib"]
    ):
        from tests.trust.readers import READERS, attempt
    reader = READERS[name]
    flags = [f"-max_total_time={seconds}", f"-max_len={LARGEST}", "-timeout=1", "-rss_limit_mb=768"]
    atheris.Setup(
        [sys.argv[0], *flags, f"-artifact_prefix={corpus}/crash-{name}-", corpus],
        lambda data: attempt(reader, data) and None,
    )
    atheris.Fuzz()


def main(seconds: int) -> None:
    from benchmarks.figures import record
    from tests.trust.readers import READERS, seeds

    lines, bad, inputs = [], 0, 0
    for name in READERS:
        with tempfile.TemporaryDirectory() as corpus:
            for number, seed in enumerate(seeds()[name]):
                (Path(corpus) / f"seed-{number}").write_bytes(seed)
            done = subprocess.run(
                [sys.executable, __file__, "--one", name, str(seconds), corpus],
                capture_output=True,
                text=True,
                check=False,
            )
            executed = re.findall(r"^Done (\d+) (?:runs )?in (\d+)", done.stderr, re.M) or re.findall(
                r"^#(\d+)\s", done.stderr, re.M
            )
            coverage = re.findall(r"cov: (\d+)", done.stderr)
            runs = int(executed[-1][0] if isinstance(executed[-1], tuple) else executed[-1]) if executed else 0
            failed = done.returncode != 0
            bad += failed
            inputs += runs
            lines.append(
                {"reader": name, "inputs": runs, "edges": int(coverage[-1]) if coverage else 0, "failed": failed}
            )
            print(lines[-1], flush=True)
            if failed:
                print(done.stderr[-3000:], done.stdout[-500:], flush=True)
                for crash in Path(corpus).glob("crash-*"):
                    print(crash.name, crash.read_bytes()[:300])
    record("fuzz", {"seconds_per_reader": seconds, "inputs": inputs, "failures": bad, "readers": lines})
    sys.exit(1 if bad else 0)


if __name__ == "__main__":
    if sys.argv[1:2] == ["--one"]:
        fuzz_one(sys.argv[2], int(sys.argv[3]), sys.argv[4])
    else:
        main(int(sys.argv[1]) if len(sys.argv) > 1 else 30)
