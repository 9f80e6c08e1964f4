"""A release that is paid for is not lost: its place is tried before the charge, another one is found after it."""

import os
import re
import shutil
import stat
import subprocess
import sys
from pathlib import Path

import pandas as pd
import pytest

import dpbn

CHARGED = ["--ledger", "b.db", "--dataset", "ward", "-y"]


@pytest.fixture
def ward(run):
    run("ledger", "open", "b.db", "ward", "--epsilon", 1)
    return lambda: float(dpbn.Ledger("b.db").remaining("ward").epsilon)


@pytest.mark.parametrize(
    ("output", "words"),
    [
        ("no/where.json", "folder"),
        ("/proc/r.json", "must be a file that can be written"),  # not even root may write there
        ("/dev/full", "must be a file, got a folder or a device"),
        ("x" * 300 + ".json", "File name too long"),
    ],
)
def test_an_unwritable_place_is_refused_before_the_charge(run, patients, ward, output, words):
    run("learn", patients, "asia", "-e", 1, "-o", output, "--overwrite", *CHARGED).refused(words)
    assert ward() == 1


def test_trying_a_place_leaves_no_trace_and_keeps_what_is_there(tmp_path):
    from dpbn.files import check_writable

    (tmp_path / "r.json").write_text("precious")
    check_writable(tmp_path / "r.json", 100_000)
    assert [path.name for path in tmp_path.iterdir()] == ["r.json"]
    assert (tmp_path / "r.json").read_text() == "precious"


def test_a_release_is_saved_elsewhere_if_its_place_went_away(run, patients, ward, tmp_path, monkeypatch):
    (tmp_path / "out").mkdir()
    (tmp_path / "temporary").mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "temporary"))
    learn = dpbn.learn

    def slow_learn(*arguments, **options):
        release = learn(*arguments, **options)
        shutil.rmtree(tmp_path / "out")
        return release

    monkeypatch.setattr(dpbn, "learn", slow_learn)
    outcome = run("learn", patients, "asia", "-e", 1, "-o", "out/r.json", *CHARGED)
    outcome.refused("out/r.json", "must exist")
    assert ward() == 0
    found = re.search(r"note: .* it was saved as '(.*r\.json)', for you only to read", outcome.err)
    assert dpbn.load_release(found[1]).guarantee.epsilon == pytest.approx(1)
    assert stat.S_IMODE(Path(found[1]).parent.stat().st_mode) == 0o700
    assert str(tmp_path / "temporary") in found[1]


def test_a_release_that_another_command_saved_meanwhile_is_kept(run, patients, ward, tmp_path, monkeypatch):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    learn = dpbn.learn

    def slow_learn(*arguments, **options):
        Path("r.json").write_text("paid for")
        return learn(*arguments, **options)

    monkeypatch.setattr(dpbn, "learn", slow_learn)
    outcome = run("learn", patients, "asia", "-e", 1, "-o", "r.json", *CHARGED)
    outcome.refused("'r.json'", "File exists")
    assert Path("r.json").read_text() == "paid for"
    assert dpbn.load_release(re.search(r"saved as '(.*r\.json)'", outcome.err)[1])


def test_when_the_temporary_folder_is_no_good_either(run, patients, ward, tmp_path, monkeypatch):
    (tmp_path / "home").mkdir()
    monkeypatch.setattr("tempfile.tempdir", "/proc")
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setattr("dpbn.cli.learn.check_output", lambda *_, **__: None)
    outcome = run("learn", patients, "asia", "-e", 1, "-o", "/proc/r.json", *CHARGED)
    outcome.refused("/proc/r.json")
    assert str(tmp_path / "home") in outcome.err


# A disk of its own, in a mount namespace of its own: 64 KB large, filled up or read-only.
ON_A_DISK = """
set -e
mkdir disk
mount -t tmpfs -o size=64k none disk
{spoil}
set +e
"{python}" -m dpbn learn patients.csv asia -e 1 --method uniform -o disk/r.json --ledger b.db --dataset ward -y
"""


@pytest.mark.parametrize(
    ("spoil", "words"),
    [
        ("dd if=/dev/zero of=disk/full bs=1k count=60 2>/dev/null || true", "No space left on device"),
        ("mount -o remount,ro disk", "Read-only file system"),
    ],
)
def test_a_full_or_read_only_disk(patients, ward, spoil, words):
    namespace = ["unshare", "--mount"] if os.geteuid() == 0 else ["unshare", "--map-root-user", "--mount"]
    probe = [*namespace, "sh", "-c", "mount -t tmpfs none /mnt"]
    if shutil.which("unshare") is None or subprocess.run(probe, capture_output=True, check=False).returncode:
        pytest.skip("needs to mount a small disk of its own")
    environment = {**os.environ, "PYTHONPATH": str(Path(dpbn.__file__).parents[1])}
    script = ON_A_DISK.format(spoil=spoil, python=sys.executable)
    done = subprocess.run(
        [*namespace, "sh", "-c", script],
        cwd=patients.parent,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1 and words in done.stderr and done.stderr.count("\n") == 1, done.stderr
    assert ward() == 1, "nothing is charged"


def test_an_interrupt_after_the_charge_does_not_say_that_nothing_was_done(run, patients, ward, monkeypatch):
    def stopped(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr("dpbn.privacy.noise.SecureNoise.laplace", stopped)
    outcome = run("learn", patients, "asia", "-e", 1, "--method", "uniform", "-o", "r.json", *CHARGED)
    outcome.refused("interrupted")
    assert "it stays charged" in outcome.err and "nothing was done" not in outcome.err
    assert ward() == 0


def test_an_interrupt_while_saving_keeps_the_release(run, patients, ward, tmp_path, monkeypatch):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    save = dpbn.Release.save
    pressed = iter([KeyboardInterrupt])

    def interrupted(self, path, **options):
        for signal in pressed:
            raise signal
        return save(self, path, **options)

    monkeypatch.setattr(dpbn.Release, "save", interrupted)
    outcome = run("learn", patients, "asia", "-e", 1, "-o", "r.json", *CHARGED)
    outcome.refused("interrupted")
    assert dpbn.load_release(re.search(r"saved as '(.*r\.json)'", outcome.err)[1])


@pytest.mark.parametrize("suffix", ["csv", "parquet"])
def test_a_table_without_records_is_told_before_the_charge_and_is_released_like_any_other(
    run, asia, ward, suffix, tmp_path, monkeypatch
):
    frame = asia.sample(1, seed=0).astype(str)
    for name, table in (("none", frame.iloc[:0]), ("one", frame)):
        if suffix == "csv":
            table.to_csv(tmp_path / f"{name}.csv", index=False)
        else:
            table.to_parquet(tmp_path / f"{name}.parquet", index=False)
    monkeypatch.setattr("sys.stdin", open(os.devnull))  # noqa: SIM115
    asked = run("learn", f"none.{suffix}", "asia", "-e", 0.5, "-o", "r.json", *CHARGED[:-1])
    assert asked.err.index("the table has no records") < asked.err.index("go on?")
    assert asked.code == 1 and ward() == 1
    made = run("learn", f"none.{suffix}", "asia", "-e", 0.5, "-o", "r.json", "--json", *CHARGED)
    assert made.code == 0 and ward() == 0.5
    assert "the table has no records" in made.err and "no records" not in made.out
    assert "no records" not in Path("r.json").read_text("utf-8")
    assert "no records" not in run("learn", f"one.{suffix}", "asia", "-e", 0.5, "-o", "s.json", *CHARGED).err
    run("learn", f"lost.{suffix}", "asia", "-e", 0.5, "-o", "t.json", "-y").refused("existing file")


@pytest.mark.parametrize("unit", [(), ("--unit", "who")])
def test_a_table_whose_records_are_all_dropped_is_told_like_one_without_any(run, asia, ward, unit, tmp_path):
    frame = asia.sample(5, seed=0).astype(str).assign(who=range(5))
    wrong = frame.assign(who=None) if unit else frame.assign(lung="?")
    for name, table in (("all", wrong), ("most", pd.concat([wrong, frame.iloc[:1]]))):
        table.to_csv(tmp_path / f"{name}.csv", index=False)
    run("learn", "all.csv", "asia", "-e", 0.5, "-o", "r.json", *unit, *CHARGED).refused("5")
    assert ward() == 1
    made = run("learn", "all.csv", "asia", "-e", 0.5, "-o", "r.json", "--json", "--on-unknown", "drop", *unit, *CHARGED)
    assert made.code == 0 and ward() == 0.5
    assert "warning: the table has no records that count" in made.err and "no records" not in made.out
    assert "no records" not in Path("r.json").read_text("utf-8")
    other = run("learn", "most.csv", "asia", "-e", 0.5, "-o", "s.json", "--on-unknown", "drop", *unit, *CHARGED)
    assert other.code == 0 and "no records" not in other.err
