"""The MLflow UI in a real browser: the chart of one metric, by a link that a command printed.

`python tests/helpers/mlflow_browser.py STORE OUT.png` draws the picture in the docs from the store of a finished study.
"""

import json
import os
import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from selenium import webdriver
from selenium.webdriver.chrome.service import Service
from selenium.webdriver.common.by import By
from selenium.webdriver.remote.webdriver import WebDriver
from selenium.webdriver.support.ui import WebDriverWait

CHROMIUM = shutil.which("chromium") or shutil.which("google-chrome")
DRIVER = shutil.which("chromedriver")
PATIENCE = 120

CHARTS = """
return [...document.querySelectorAll('[data-testid="experiment-view-compare-runs-card"]')].flatMap(card =>
  [...card.querySelectorAll('.js-plotly-plot')].map(plot => ({
    title: card.innerText.split('\\n')[0],
    lines: plot._fullData.filter(line => line.type !== 'bar' && line.x && line.x.length > 1)
      .map(line => ({
        name: line.name, colour: line.line.color || line.marker.color, x: [...line.x], y: [...line.y],
      })),
  })));
"""


@contextmanager
def browser(width: int = 1400, height: int = 900) -> Iterator[WebDriver]:
    options = webdriver.ChromeOptions()
    options.binary_location = CHROMIUM or ""
    for argument in ("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"):
        options.add_argument(argument)
    options.add_argument(f"--window-size={width},{height}")
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    driver = webdriver.Chrome(options=options, service=Service(DRIVER))
    try:
        yield driver
    finally:
        driver.quit()


def open_chart(driver: WebDriver, link: str, metric: str) -> dict[str, Any]:
    """Open a link that a command printed, and return the chart of a metric once it has lines."""
    wait = WebDriverWait(driver, PATIENCE)
    driver.get(link)

    def drawn(d: WebDriver) -> dict[str, Any] | None:
        charts = d.execute_script(CHARTS)
        return next((c for c in charts if c["title"] == metric and len(c["lines"]) > 1), None)

    chart = dict(wait.until(drawn))
    for close in driver.find_elements(By.CSS_SELECTOR, '[aria-label="Close"]'):
        close.click()  # the assistant, which covers a third of the page
    return chart


def names_listed(driver: WebDriver) -> set[str]:
    """The runs in the list beside the charts."""
    return {link.text for link in driver.find_elements(By.CSS_SELECTOR, 'a[href*="/runs/"]') if link.text}


def main(store: Path, out: Path) -> None:
    from fcer.tracking import first_page
    from mlflow_server import Server

    server = Server(store.resolve().parent, store=store.resolve())
    server.start()
    try:
        with browser(1400, 1000) as driver:
            os.environ["MLFLOW_TRACKING_URI"] = server.uri
            chart = open_chart(driver, first_page(), "fcer/auroc")
            driver.find_element(By.CSS_SELECTOR, '[aria-label="Toggle sidebar"]').click()
            driver.save_screenshot(str(out))
            print(json.dumps([line["name"] for line in chart["lines"]]))
    finally:
        server.kill()


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
