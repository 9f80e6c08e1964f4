"""Files written whole: on disk before they have their name, and never over what cannot be made again."""

import os
import stat

import pytest

import dpbn
from dpbn import files
from dpbn.errors import InputError


def test_content_is_on_disk_before_it_has_its_name_and_the_name_before_it_is_called_done(tmp_path, monkeypatch):
    calls, fsync, replace = [], os.fsync, os.replace

    def watched_fsync(handle):
        calls.append("folder" if stat.S_ISDIR(os.fstat(handle).st_mode) else os.fstat(handle).st_size)
        fsync(handle)

    def watched_replace(source, target):
        calls.append("named")
        replace(source, target)

    monkeypatch.setattr(os, "fsync", watched_fsync)
    monkeypatch.setattr(os, "replace", watched_replace)
    files.write_atomically(tmp_path / "x.json", "seven b")
    assert calls == [7, "named", "folder"]


def test_a_file_may_be_read_by_others_and_its_reader_keeps_the_old_one(tmp_path):
    path = files.write_atomically(tmp_path / "x.json", "old")
    assert stat.S_IMODE(path.stat().st_mode) == 0o644
    with path.open() as reader:
        files.write_atomically(path, "new")
        assert reader.read() == "old" and path.read_text() == "new"


@pytest.mark.parametrize("links", [True, False])
def test_what_must_be_new_takes_nobodys_name(tmp_path, monkeypatch, links):
    def without(*_):
        raise PermissionError  # a disk that has none

    if not links:
        monkeypatch.setattr(os, "link", without)
    path = files.write_atomically(tmp_path / "x.json", "first", overwrite=False)
    with pytest.raises(InputError, match="must be a file that can be written: File exists"):
        files.write_atomically(path, "second", overwrite=False)
    assert path.read_text() == "first" and os.listdir(tmp_path) == ["x.json"]


def test_a_file_is_its_owners_alone_where_new_files_are(tmp_path):
    before = os.umask(0o077)  # what is not private may be written, too
    try:
        path = files.write_atomically(tmp_path / "x.json", "exact")
    finally:
        os.umask(before)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


@pytest.mark.parametrize("letter", ["x", "名", "🧬"])
def test_a_name_may_be_as_long_as_the_disk_takes(tmp_path, letter):
    path = tmp_path / (letter * (250 // len(letter.encode())) + ".json")
    files.check_writable(path, 10)
    assert files.write_atomically(path, "whole").read_text() == "whole"
    assert os.listdir(tmp_path) == [path.name]


def test_nothing_is_written_over_a_ledger_and_only_a_release_over_a_release(tmp_path):
    dpbn.Ledger(tmp_path / "budget.db").open_dataset("ward", 1)
    network = dpbn.load_network("cancer")
    release = dpbn.learn(network.sample(50, seed=0), network, 1.0, noise=dpbn.InsecureNoise(1))
    release.save(tmp_path / "x.json")
    for by_release in (False, True):
        with pytest.raises(InputError, match="must not be a ledger"):
            files.check_replaceable(tmp_path / "budget.db", by_release=by_release)
        files.check_replaceable(tmp_path / "new.json", by_release=by_release)
    files.check_replaceable(tmp_path / "x.json", by_release=True)
    with pytest.raises(InputError, match="must not be a release"):
        files.check_replaceable(tmp_path / "x.json")
