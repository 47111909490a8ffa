"""What looks at pages: a headless Chromium, with words for what tests do with it."""

import io
import os
import tempfile
from collections.abc import Callable
from shutil import which
from typing import Any, TypeVar

from PIL import Image
from selenium import webdriver
from selenium.common.exceptions import WebDriverException
from selenium.webdriver.chrome.options import Options
from selenium.webdriver.chrome.service import Service
from selenium.webdriver.common.action_chains import ActionChains
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.remote.webelement import WebElement
from selenium.webdriver.support.ui import WebDriverWait

T = TypeVar("T")
LIMIT_SECONDS = 20
FLAGS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-dev-shm-usage",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-first-run",
    "--hide-scrollbars",
    "--lang=en",
    "--window-size=1360,900",
)


class Eyes:
    """A browser; it starts when it is first pointed at something."""

    def __init__(self) -> None:
        self._driver: webdriver.Chrome | None = None
        self._profile = tempfile.TemporaryDirectory(prefix="metaforge-chromium-", ignore_cleanup_errors=True)
        self._url = ""

    def __enter__(self) -> "Eyes":
        return self

    def __exit__(self, *fault: object) -> None:
        if self._driver is not None:
            self._driver.quit()
        self._profile.cleanup()

    @property
    def driver(self) -> webdriver.Chrome:
        """The browser itself."""
        if self._driver is None:
            options = Options()
            options.binary_location = which("chromium") or ""
            for flag in (*FLAGS, f"--user-data-dir={self._profile.name}"):
                options.add_argument(flag)
            options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
            service = Service(which("chromedriver") or "", env={**os.environ, "HOME": self._profile.name})
            self._driver = webdriver.Chrome(options=options, service=service)
        return self._driver

    def at(self, url: str) -> "Eyes":
        """Look at a server, as a browser that was never there."""
        self._url = url
        self.driver.get("about:blank")
        self.driver.execute_cdp_cmd("Network.clearBrowserCookies", {})
        self.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": []})
        self.driver.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": False})
        self.driver.get_log("browser")
        return self

    def open(self, path: str) -> "Eyes":
        """Load a page."""
        self.driver.get(self._url + path)
        return self

    def find(self, css: str) -> WebElement:
        """Wait for an element and return it."""
        return self.until(lambda: next(iter(self.all(css)), None))

    def all(self, css: str) -> list[WebElement]:
        """Return the elements that are there now."""
        return self.driver.find_elements(By.CSS_SELECTOR, css)

    def text(self, css: str = "main") -> str:
        """Return what is read in an element."""
        return self.run("return document.querySelector(arguments[0])?.innerText ?? ''", css)

    def click(self, css: str) -> None:
        """Click an element."""
        self.find(css).click()

    def type(self, css: str, text: str) -> None:
        """Replace what is in a field."""
        field = self.find(css)
        field.clear()
        field.send_keys(text)

    def press(self, *keys: str) -> None:
        """Press keys, wherever the focus is."""
        for key in keys:
            ActionChains(self.driver).send_keys(key).perform()

    def tab_to(self, css: str, most: int = 60) -> WebElement:
        """Move the focus by the keyboard alone until it is on an element."""
        for _ in range(most):
            if self.run("return document.activeElement?.matches(arguments[0]) ?? false", css):
                return self.driver.switch_to.active_element
            self.press(Keys.TAB)
        raise AssertionError(f"{most} times Tab did not lead to {css}")

    def run(self, script: str, *values: Any) -> Any:
        """Run a script in the page and return what it returns."""
        return self.driver.execute_script(script, *values)

    def until(self, condition: Callable[[], T], message: str = "") -> T:
        """Wait for something to be true and return it."""
        found: T = WebDriverWait(self.driver, LIMIT_SECONDS, 0.02, ignored_exceptions=(WebDriverException,)).until(
            lambda _: condition(), message
        )
        return found

    def until_live(self) -> "Eyes":
        """Wait until the page hears of the ledger's events."""
        self.until(lambda: self.text("#live") == "Live")
        return self

    def dark(self) -> "Eyes":
        """Prefer dark from now on."""
        feature = {"name": "prefers-color-scheme", "value": "dark"}
        self.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [feature]})
        return self

    def without_scripts(self) -> "Eyes":
        """Run no scripts of pages from now on."""
        self.driver.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": True})
        return self

    def complaints(self) -> list[str]:
        """Return errors the browser has logged since the last time: refusals, failed loads, faults in scripts."""
        return [entry["message"] for entry in self.driver.get_log("browser") if entry["level"] == "SEVERE"]

    def colours(self, css: str) -> list[tuple[int, tuple[int, int, int]]]:
        """Return the colours of an element as it is drawn, each with how many pixels have it."""
        picture = Image.open(io.BytesIO(self.find(css).screenshot_as_png)).convert("RGB")
        found = picture.getcolors(picture.width * picture.height)
        return [(count, (red, green, blue)) for count, (red, green, blue) in found or ()]
