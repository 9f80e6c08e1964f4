"""Programs outside Python that some tests need: found, or the test is skipped with the reason (fails if CI=true)."""

import glob
import os
import shutil
from collections.abc import Callable

import pytest

PROGRAMS = {
    "java": ("java",),
    "chromium": ("chromium", "chromium-browser", "google-chrome"),
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
