"""Programs outside Python that some tests need: found, or the test is skipped with the reason (fails if CI=true).

Hypothesis draws the same examples in every run and does not mind a slow machine, so that a test fails for a change of
the code and for nothing else. `pytest --hypothesis-profile=search` looks for new examples.
"""

import glob
import os
import shutil
from collections.abc import Callable

import pytest

try:
    from hypothesis import HealthCheck, settings
except ImportError:  # the environment of Ibis has none
    pass
else:
    settings.register_profile("search", deadline=None, derandomize=False, suppress_health_check=[HealthCheck.too_slow])
    settings.register_profile("same", settings.get_profile("search"), derandomize=True, database=None)
    settings.load_profile("same")

PROGRAMS = {
    "java": ("java",),
    "chromium": ("chromium", "chromium-browser", "google-chrome"),
    "gcc": ("gcc", "cc"),
    "postgresql": ("/usr/lib/postgresql/*/bin/postgres", "postgres"),
}


def find_program(name: str) -> str | None:
    for pattern in PROGRAMS[name]:
        found = sorted(glob.glob(pattern)) if "*" in pattern else [shutil.which(pattern)]
        if found and found[-1]:
            return found[-1]
    return None


@pytest.fixture(scope="session")
def require_system() -> Callable[[str], str]:
    """`require_system("java")` is the program's path."""

    def require(name: str) -> str:
        path = find_program(name)
        if path is None:
            reason = f"{name} is not installed: scripts/system-packages installs it on Debian as root"
            if os.environ.get("CI", "").lower() == "true":
                pytest.fail(reason)
            pytest.skip(reason)
        return path

    return require


@pytest.fixture(scope="session")
def spark(require_system):
    """A Spark session on this machine, two workers."""
    sql = pytest.importorskip("pyspark.sql", reason="pyspark is not installed: pip install 'dpbn[spark]'")
    require_system("java")
    settings = {
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.sql.shuffle.partitions": "2",
        # many tiny queries: compiling them costs more than it saves
        "spark.sql.codegen.wholeStage": "false",
        "spark.sql.codegen.factoryMode": "NO_CODEGEN",
        "spark.sql.adaptive.enabled": "false",
        "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
    }
    builder = sql.SparkSession.builder.master("local[2]").appName("dpbn tests")
    for key, value in settings.items():
        builder = builder.config(key, value)
    session = builder.getOrCreate()
    yield session
    session.stop()
