# SPDX-License-Identifier: MIT
"""System programs that some tests need: `@pytest.mark.needs("node")`, or `require("node")`."""

import os
import shutil

import pytest

PACKAGES = {
    "bwrap": "bubblewrap",
    "chromium": "chromium",
    "curl": "curl",
    "node": "nodejs",
    "openssl": "openssl",
}
"""The package of each program, as Debian names it."""


def require(program: str) -> None:
    """Skip the test where a program is missing; fail it instead where everything must be tested."""
    if shutil.which(program) is not None:
        return
    why = f"{program} is missing: apt-get install {PACKAGES[program]}"
    if os.environ.get("CI") == "true":
        pytest.fail(why, pytrace=False)
    pytest.skip(why)
