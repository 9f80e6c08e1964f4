"""A PostgreSQL server of its own, on a loopback port, as an ordinary user, gone after the tests."""

import os
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from pathlib import Path

import pytest


def _ordinary_user():
    """Who the server runs as: PostgreSQL refuses root."""
    return {"user": "postgres", "group": "postgres", "extra_groups": []} if os.getuid() == 0 else {}


@pytest.fixture(scope="session")
def postgres(require_system):
    """Keyword arguments for a connection."""
    binaries = Path(require_system("postgresql")).parent
    folder = Path(tempfile.mkdtemp(prefix="dpbn-postgres-"))
    if os.getuid() == 0:
        shutil.chown(folder, "postgres", "postgres")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL, "cwd": folder, **_ordinary_user()}
    make = ["initdb", "-D", "data", "-U", "tester", "-A", "trust", "-E", "UTF8", "--locale=C", "--no-sync"]
    subprocess.run([binaries / make[0], *make[1:]], check=True, **quiet)
    serve = ["-D", "data", "-h", "127.0.0.1", "-p", str(port), "-k", str(folder), "-c", "fsync=off"]
    server = subprocess.Popen([binaries / "postgres", *serve], **quiet)
    try:
        asked = [binaries / "pg_isready", "-q", "-h", "127.0.0.1", "-p", str(port)]
        for _ in range(3000):
            if subprocess.run(asked, check=False).returncode == 0:
                break
            assert server.poll() is None, "the server ended before it was ready"
            time.sleep(0.1)
        else:
            raise AssertionError("the server was not ready in five minutes")
        yield {"host": "127.0.0.1", "port": port, "user": "tester", "database": "postgres"}
    finally:
        server.send_signal(signal.SIGINT)  # does not wait for open connections
        server.wait(timeout=300)
        shutil.rmtree(folder, ignore_errors=True)
