"""The examples of docs/large-data.md run as they stand, one after another."""

import re
from pathlib import Path

PAGE = Path(__file__).parents[2] / "docs" / "large-data.md"


def test_examples_run(capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    blocks = re.findall(r"```python\n(.*?)```", PAGE.read_text("utf-8"), re.DOTALL)
    assert len(blocks) == 3
    names: dict = {}
    for block in blocks:
        exec(compile(block, str(PAGE), "exec"), names)
    assert capsys.readouterr().out.splitlines() == ["BayesianNetwork(8 nodes, 8 arcs, 18 free parameters)", "2"]
