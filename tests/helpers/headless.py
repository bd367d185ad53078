"""A real browser without a window: the page as it stands after its scripts ran, and what they complained of."""

import re
import shutil
import subprocess
from pathlib import Path

import pytest

BROWSER = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome", "chrome"))), None)

needs_browser = pytest.mark.skipif(BROWSER is None, reason="neither Chromium nor Chrome is installed")


def open_page(page: Path, profile: Path) -> tuple[str, list[str]]:
    """The document after loading, and every line on the console."""
    call = [
        str(BROWSER),
        "--headless",
        "--no-sandbox",
        "--disable-gpu",
        "--disable-dev-shm-usage",
        "--no-first-run",
        "--disable-background-networking",
        "--host-resolver-rules=MAP * ~NOTFOUND",  # whatever the browser itself would ask for
        f"--user-data-dir={profile}",
        "--enable-logging=stderr",
        "--virtual-time-budget=30000",
        "--window-size=1200,2000",
        "--dump-dom",
        page.as_uri(),
    ]
    done = subprocess.run(call, capture_output=True, text=True, timeout=600, check=True)
    return done.stdout, re.findall(r":CONSOLE:\d+\] (.*)", done.stderr)
