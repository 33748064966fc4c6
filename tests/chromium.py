"""A real Chromium for tests, by Selenium: headless, with an empty profile, and with no host to reach but this one."""

from __future__ import annotations

import json
import os
import shutil
import time
from collections.abc import Callable, Generator, Iterable, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import urlsplit

import pytest

CSS = "css selector"
DEADLINE_S = 90  # for a machine that is busy with other tests
WIDE = (1280, 900)
PHONE = (390, 844)
# Chromium's own services are off: with them it calls its makers' hosts by itself.
FLAGS = (
    "--headless=new",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-extensions",
    "--disable-dev-shm-usage",
    "--disable-features=OptimizationHints,MediaRouter,Translate",
    "--hide-scrollbars",
    "--lang=en-US",
)

Answer = TypeVar("Answer")


class NoSuchField(Exception):
    """The page has no field with this label."""


class Browser:
    """A Chromium with one tab. Elements are named as people name them: by their labels, and by the words on buttons and links."""

    def __init__(self, driver: Any, gone: tuple[type[Exception], ...] = ()) -> None:
        """`gone` are the exceptions of elements that are not there, or not any more."""
        self._driver = driver
        self._gone: tuple[type[Exception], ...] = (NoSuchField, *gone)

    def open(self, url: str) -> None:
        self._driver.get(url)

    @property
    def url(self) -> str:
        return str(self._driver.current_url)

    @property
    def path(self) -> str:
        parts = urlsplit(self.url)
        return parts.path + (f"?{parts.query}" if parts.query else "")

    @property
    def title(self) -> str:
        return str(self._driver.title)

    def text(self, selector: str = "body") -> str:
        """What a person sees of the first element."""
        return str(self._driver.find_element(CSS, selector).text)

    def texts(self, selector: str) -> list[str]:
        return [str(element.text) for element in self._driver.find_elements(CSS, selector)]

    def count(self, selector: str) -> int:
        return len(self._driver.find_elements(CSS, selector))

    def run(self, script: str, *arguments: object) -> Any:
        """What a script in the page returns. It runs beside the page, so the page's Content-Security-Policy does not apply to it."""
        return self._driver.execute_script(script, *arguments)

    def run_async(self, script: str, *arguments: object) -> Any:
        """The same for a script that calls its last argument with the answer."""
        return self._driver.execute_async_script(script, *arguments)

    def wait(self, answer: Callable[[], Answer], what: str = "") -> Answer:
        """The first true answer. What is not there yet, or is replaced while it is read, counts as no answer."""
        deadline = time.monotonic() + DEADLINE_S
        while True:
            try:
                if given := answer():
                    return given
            except self._gone:
                pass
            if time.monotonic() > deadline:
                raise AssertionError(f"{what or 'it'} did not come within {DEADLINE_S} s; {self.url} shows:\n{self.text()}")
            time.sleep(0.03)

    def wait_text(self, text: str, selector: str = "body") -> None:
        self.wait(lambda: text in self.text(selector), repr(text))

    def fill(self, label: str, text: str) -> None:
        """Replaces the text of a field, by its label."""
        field = self.wait(lambda: self._field(label), f"the field {label!r}")
        field.clear()
        field.send_keys(text)

    def paste(self, label: str, text: str) -> None:
        """Sets the text of a field at once: characters outside the first plane cannot be typed."""
        self.run("arguments[0].value = arguments[1]", self._field(label), text)

    def choose(self, label: str, option: str) -> None:
        """Chooses an option of a select, by the words of the option."""
        script = "const one = [...arguments[0].options].find((o) => o.text.trim() === arguments[1]); one.selected = true; return true;"
        self.run(script, self._field(label), option)

    def value(self, label: str) -> str:
        return str(self._field(label).get_property("value"))

    def check(self, selector: str) -> None:
        self._driver.find_element(CSS, selector).click()

    def press(self, name: str, within: str = "main") -> None:
        """Presses a button or follows a link, by its words or its label, once it is there. The next command waits for a new page."""
        self.wait(lambda: self._press(name, within), f"the button {name}")

    def confirm(self) -> None:
        """Answers the page's question with Yes."""
        self.wait(lambda: self.count("#confirm[open]") == 1, "the question")
        self._leave(self._driver.find_element(CSS, "#confirm button[value=yes]"))

    def type_keys(self, *keys: str) -> None:
        """Types on the page, wherever the focus is. Keys without a character have Selenium's names, such as ESCAPE."""
        from selenium.webdriver.common.keys import Keys

        for key in keys:
            self._driver.switch_to.active_element.send_keys(getattr(Keys, key, key))

    def resize(self, size: tuple[int, int]) -> None:
        width, height = size
        self.command("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=size == PHONE)

    def theme(self, name: str) -> None:
        """`light` or `dark`, as the system would say."""
        self.command("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": name}])

    def command(self, method: str, **parameters: object) -> dict[str, Any]:
        """A command of the DevTools protocol."""
        answer: dict[str, Any] = self._driver.execute_cdp_cmd(method, parameters)
        return answer

    def messages(self) -> list[str]:
        """What the console of the browser has got since the last call: violations of a Content-Security-Policy, errors, failed requests."""
        return [str(entry["message"]) for entry in self._driver.get_log("browser")]

    def requests(self) -> list[str]:
        """The addresses that pages have requested since the last call, also those that were refused."""
        events = [json.loads(entry["message"])["message"] for entry in self._driver.get_log("performance")]
        return [event["params"]["request"]["url"] for event in events if event["method"] == "Network.requestWillBeSent"]

    def is_asking(self) -> bool:
        """Whether a script has opened a dialog of the browser."""
        from selenium.common.exceptions import NoAlertPresentException

        try:
            return self._driver.switch_to.alert is not None
        except NoAlertPresentException:
            return False

    def forget(self) -> None:
        """Logs out everywhere."""
        self.command("Network.clearBrowserCookies")

    def _field(self, label: str) -> Any:
        for element in self._driver.find_elements(CSS, "main :is(input, select, textarea)[aria-label]"):
            if element.get_attribute("aria-label") == label:
                return element
        for element in self._driver.find_elements(CSS, "main label"):
            if str(element.text).strip() == label:
                inside = element.find_elements(CSS, "input")
                return inside[0] if inside else self._driver.find_element("id", element.get_attribute("for"))
        raise NoSuchField(f"there is no field {label!r} on {self.url}")

    def _press(self, name: str, within: str) -> bool:
        for element in self._driver.find_elements(CSS, f"{within} :is(button, a, summary)"):
            if element.is_displayed() and name in (str(element.text).strip(), element.get_attribute("aria-label")):
                self._leave(element)
                return True
        return False

    def _leave(self, element: Any) -> None:
        """Clicks. Where the click loads another page, the driver waits for it itself, before its next command."""
        self.run("arguments[0].scrollIntoView({block: 'center'})", element)
        element.click()


@contextmanager
def running(profile: Path) -> Generator[Browser, None, None]:
    """A Chromium with an empty profile in this directory. Skips the test where there is none."""
    chromium, chromedriver = shutil.which("chromium"), shutil.which("chromedriver")
    if chromium is None or chromedriver is None:
        pytest.skip("needs Chromium (Debian: apt-get install chromium chromium-driver)")
    pytest.importorskip("selenium", reason="needs Selenium: pip install -r requirements/ci.txt")
    from selenium.common.exceptions import NoSuchElementException, StaleElementReferenceException
    from selenium.webdriver import Chrome, ChromeOptions
    from selenium.webdriver.chrome.service import Service

    options = ChromeOptions()
    options.binary_location = chromium
    for flag in _flags(profile):
        options.add_argument(flag)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    options.add_experimental_option("perfLoggingPrefs", {"enableNetwork": True, "enablePage": False})
    driver = Chrome(options=options, service=Service(executable_path=chromedriver))
    try:
        driver.set_page_load_timeout(DEADLINE_S)
        driver.set_script_timeout(DEADLINE_S)
        browser = Browser(driver, (NoSuchElementException, StaleElementReferenceException))
        browser.resize(WIDE)
        yield browser
    finally:
        driver.quit()


def hosts(urls: Iterable[str]) -> set[str]:
    """The hosts of addresses that leave the browser."""
    return {urlsplit(url).hostname or "" for url in urls if urlsplit(url).scheme not in ("data", "about", "blob")}


def _flags(profile: Path) -> Sequence[str]:
    size = f"--window-size={WIDE[0]},{WIDE[1]}"
    own = (size, f"--user-data-dir={profile}", "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE localhost, EXCLUDE 127.0.0.1")
    root = ("--no-sandbox",) if hasattr(os, "geteuid") and os.geteuid() == 0 else ()
    return (*FLAGS, *own, *root)
