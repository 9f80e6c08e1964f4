"""Programs outside Python that some tests need: found, or the test is skipped with the reason (fails if CI=true)."""

import glob
import os
import shutil
from collections.abc import Callable

import pytest

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
