"""Run commands in this process, as the installed script would: arguments in, exit code and both streams out."""

import sys
from dataclasses import dataclass

import pytest

import dpbn
from dpbn.cli import main


@dataclass
class Outcome:
    code: int
    out: str
    err: str

    def refused(self, *words):
        """One line, exit code 1, no traceback; says what is wrong."""
        assert self.code == 1, (self.out, self.err)
        errors = [line for line in self.err.splitlines() if line.startswith("error: ")]
        assert len(errors) == 1, self.err
        assert "Traceback" not in self.err
        for word in words:
            assert word in errors[0], errors[0]


@pytest.fixture
def run(monkeypatch, capsys, tmp_path):
    """`run("query", "asia", "lung")` in a fresh folder."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("DPBN_DEBUG", raising=False)

    def call(*arguments):
        monkeypatch.setattr(sys, "argv", ["dpbn", *map(str, arguments)])
        code = 0
        try:
            main()
        except SystemExit as stop:
            code = int(stop.code or 0)
        streams = capsys.readouterr()
        return Outcome(code, streams.out, streams.err)

    return call


@pytest.fixture(scope="session")
def asia():
    return dpbn.load_network("asia")


@pytest.fixture
def patients(asia, tmp_path):
    path = tmp_path / "patients.csv"
    asia.sample(800, seed=1).to_csv(path, index=False)
    return path


@pytest.fixture
def release(run, patients):
    assert run("learn", patients, "asia", "-e", 1, "--method", "uniform", "-o", "asia.release.json", "-y").code == 0
    return "asia.release.json"
