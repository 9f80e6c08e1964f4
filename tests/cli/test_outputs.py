"""What is there already is kept: a file is replaced where the user says so, a release by a release only."""

import pytest

import dpbn
from dpbn.errors import InputError


@pytest.mark.parametrize(
    ("command", "name"),
    [
        (["sample", "asia", "-n", 5, "-o"], "rows.csv"),
        (["convert", "asia"], "asia.bif"),
        (["predict", "asia", "new.csv", "lung", "-o"], "p.csv"),
    ],
)
def test_a_file_is_replaced_only_where_the_user_says_so(run, tmp_path, command, name):
    (tmp_path / "new.csv").write_text("smoke\nyes\n")
    (tmp_path / name).write_text("precious")
    run(*command, name).refused("must not exist yet", "--overwrite")
    assert (tmp_path / name).read_text() == "precious"
    assert run(*command, name, "--overwrite").code == 0
    assert (tmp_path / name).read_text() != "precious"


def test_a_table_of_no_known_format_is_refused_before_the_work(run, tmp_path):
    (tmp_path / "new.csv").write_text("smoke\nmaybe\n")
    run("predict", "asia", "new.csv", "lung", "-o", "p.txt").refused("must end in .csv or .parquet, got 'p.txt'")
    run("sample", "asia", "-n", 5, "-g", "smoke=maybe", "-o", "p.txt").refused("must end in .csv or .parquet")


def test_a_release_is_replaced_by_a_release_only(run, release, tmp_path):
    before = (tmp_path / release).read_bytes()
    run("convert", "asia", release, "--overwrite").refused("must not be a release")
    run("sample", "asia", "-n", 5, "-o", release, "--overwrite").refused("must not be a release")
    with pytest.raises(InputError, match="must not be a release"):
        dpbn.write_network(dpbn.load_network("asia"), tmp_path / release)
    assert (tmp_path / release).read_bytes() == before


@pytest.mark.parametrize("name", ["x.bif", "x.json.gz", "x"])
def test_a_release_is_saved_under_a_name_that_it_can_be_opened_by(run, release, tmp_path, name):
    with pytest.raises(InputError, match=r"must end in \.json, got .*x"):
        dpbn.load_release(release).save(tmp_path / name)
    assert not (tmp_path / name).exists()


def test_a_network_written_over_a_network_is_fine(tmp_path, asia):
    for _ in range(2):
        dpbn.write_network(asia, tmp_path / "asia.json")


def test_swapped_arguments_of_write_network(asia):
    with pytest.raises(InputError, match="the network comes first"):
        dpbn.write_network("x.bif", asia)
