"""Fixtures that the tests share."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable

import pytest

#: The command to compare with: a separately built one, or the one inside the package.
COMMAND = [os.environ["ASYMQ"]] if os.environ.get("ASYMQ") else [sys.executable, "-m", "asymq"]


@pytest.fixture(scope="session")
def command() -> Callable[..., subprocess.CompletedProcess[str]]:
    """Runs the command line."""

    def run(*words: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run([*COMMAND, *words], capture_output=True, text=True, check=False)

    return run
