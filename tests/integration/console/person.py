"""Somebody at a console: a browser, and the address of the console."""

from __future__ import annotations

from dataclasses import dataclass

from tests.chromium import Browser


@dataclass(frozen=True)
class Person:
    """Opens pages by their paths, and does what every page has."""

    browser: Browser
    console: str

    def open(self, path: str) -> Browser:
        self.browser.open(self.console + path)
        return self.browser

    def log_in(self, user: str, password: str, path: str = "/") -> None:
        """From the page that was asked for, which leads to the login."""
        self.open(path)
        self.enter(user, password)
        self.browser.wait(lambda: not self.browser.path.startswith("/login"), "the page after the login")

    def enter(self, user: str, password: str) -> None:
        self.browser.fill("User", user)
        self.browser.fill("Password", password)
        self.browser.press("Log in")

    def see(self, *texts: str) -> None:
        """Waits until the page shows all of these."""
        for text in texts:
            self.browser.wait_text(text)

    def reload_until(self, path: str, text: str) -> None:
        """Opens a page again and again, until it shows this text."""

        def shows() -> bool:
            return text in self.open(path).text("main")

        self.browser.wait(shows, repr(text))
