"""A headless Chromium that opens a file, and tells what it asked of networks and complained of."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from selenium import webdriver
from selenium.webdriver.chrome.options import Options
from selenium.webdriver.chrome.service import Service

_OWN = ("file:", "data:", "about:", "chrome:", "chrome-")


@contextmanager
def opened(path: Path, profile: Path) -> Iterator[Any]:
    """The driver of a browser that shows the file and keeps all that it has in the folder
    `profile`."""
    options = Options()
    options.binary_location = shutil.which("chromium") or "chromium"
    for switch in ("headless=new", "no-sandbox", "disable-dev-shm-usage", "disable-gpu"):
        options.add_argument(f"--{switch}")
    options.add_argument("--window-size=1600,1000")
    options.add_argument(f"--user-data-dir={profile}")
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    home = {**os.environ, "HOME": str(profile), "XDG_CONFIG_HOME": str(profile)}
    driver = webdriver.Chrome(options, Service(shutil.which("chromedriver"), env=home))
    try:
        driver.get(path.as_uri())
        yield driver
    finally:
        driver.quit()


def requests_to_networks(driver: Any) -> list[str]:
    """What the page asked for that is neither on this disk nor in the page itself."""
    messages = [json.loads(entry["message"])["message"] for entry in driver.get_log("performance")]
    sent = [m for m in messages if m["method"] == "Network.requestWillBeSent"]
    urls = [message["params"]["request"]["url"] for message in sent]
    return [url for url in urls if not url.startswith(_OWN)]


def complaints(driver: Any) -> list[str]:
    """Errors and warnings of the page's console."""
    return [entry["message"] for entry in driver.get_log("browser")]
