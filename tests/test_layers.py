"""Imports go one way: down the journey of a private record, and never back to the rows."""

import ast
from pathlib import Path

import pytest

import dpbn

ROOT = Path(dpbn.__file__).parent

# Each line may import from its own line and the ones above it.
LAYERS = [
    ["errors", "version"],
    ["files"],
    ["domain"],
    ["margins"],
    ["matching"],
    ["elimination"],
    ["graph"],
    ["crossings"],
    ["layout"],
    ["network"],
    ["public", "workload"],
    ["formats"],
    ["tables"],
    ["sampling"],
    ["inference"],
    ["privacy"],
    ["measurement"],
    ["measure"],
    ["data"],
    ["learners"],
    ["support"],
    ["release", "claim", "statement"],
    ["uncertainty"],
    ["learning"],
    ["evaluate", "audit", "__init__"],
    ["display", "report", "sklearn", "web", "cli"],
]
LEVEL = {name: level for level, names in enumerate(LAYERS) for name in names}

# What runs after the privacy boundary is post-processing because it cannot reach the rows.
BLIND = [
    "network",
    "inference",
    "release",
    "claim",
    "statement",
    "support",
    "report",
    "display",
    "web",
    "layout",
    "learners",
    "uncertainty",
]

# Conveniences: a method of a value that calls a later layer, imported when it is called.
CONVENIENCES = {
    ("network", "sampling"),  # network.sample()
    ("network", "display"),  # notebooks
    ("release", "display"),
    ("inference", "display"),
    ("inference", "release"),  # Inference(release) takes its network
    ("inference", "uncertainty"),  # answer.interval()
}


def modules():
    for path in sorted(ROOT.rglob("*.py")):
        yield path.relative_to(ROOT).with_suffix("").parts, ast.parse(path.read_text("utf-8"))


def imported(tree, package):
    """(name of the layer, inside a function?) for every import of dpbn that runs."""

    def visit(node, inside):
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.If) and "TYPE_CHECKING" in ast.unparse(child.test):
                continue
            if isinstance(child, ast.Import):
                names = [alias.name for alias in child.names]
            elif isinstance(child, ast.ImportFrom):
                assert child.level == 0, "imports are absolute here"
                names = [f"{child.module}.{alias.name}" for alias in child.names]
            else:
                yield from visit(child, inside or isinstance(child, ast.FunctionDef))
                continue
            for name in names:
                parts = name.split(".")
                if parts[0] == "dpbn":
                    known = len(parts) > 1 and parts[1] in LEVEL
                    yield (parts[1] if known else "__init__"), inside

    return visit(tree, False)


ALL = [(parts, tree) for parts, tree in modules() if parts not in {("__init__",), ("__main__",)}]
IDS = ["/".join(parts) for parts, _ in ALL]


@pytest.mark.parametrize(("parts", "tree"), ALL, ids=IDS)
def test_a_module_imports_only_what_stands_before_it(parts, tree):
    layer = parts[0]
    assert layer in LEVEL, f"say in LAYERS where {layer} belongs"
    for target, inside in imported(tree, layer):
        if inside and (layer, target) in CONVENIENCES:
            continue
        assert LEVEL[target] <= LEVEL[layer], f"{'.'.join(parts)} imports {target}, which comes after it"


@pytest.mark.parametrize(("parts", "tree"), [m for m in ALL if m[0][0] in BLIND])
def test_nothing_after_the_boundary_can_reach_rows(parts, tree):
    targets = {target for target, _ in imported(tree, parts[0])}
    assert not targets & {"data", "learning"}, f"{'.'.join(parts)} must not see private rows"


def test_files_stay_readable():
    long = {str(p.relative_to(ROOT)): n for p in ROOT.rglob("*.py") if (n := len(p.read_text().splitlines())) > 400}
    assert not long, f"split before 400 lines: {long}"
