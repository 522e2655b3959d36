"""The system's Chromium, and pages that fail on JavaScript errors."""

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from playwright.sync_api import Browser, ConsoleMessage, Dialog, Page, sync_playwright

from tests.apache.unavailable import Unavailable, skip

NAMES = ("chromium", "chromium-browser", "google-chrome")

DESKTOP = {"width": 1280, "height": 900}
PHONE = {"width": 390, "height": 844}

TIMEOUT_MS = 30_000


def find_chromium() -> str:
    for name in NAMES:
        if found := shutil.which(name):
            return found
    raise Unavailable(f"no browser is installed: none of {', '.join(NAMES)}")


@contextmanager
def open_browser() -> Iterator[Browser]:
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=find_chromium(),
            # Containers often have no user namespaces for a sandbox; the pages are trusted.
            args=["--no-sandbox", "--disable-dev-shm-usage"],
        )
        try:
            yield browser
        finally:
            browser.close()


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    try:
        find_chromium()
    except Unavailable as reason:
        skip(reason)
    with open_browser() as opened:
        yield opened


@contextmanager
def open_page(browser: Browser, *, expected_error: str = "", **options: Any) -> Iterator[Page]:
    """Fails if the page logs an error, throws one, or opens a dialog.

    A browser also logs an error for an HTTP error status, which `expected_error` allows.
    """
    context = browser.new_context(**{"viewport": DESKTOP, **options})
    context.set_default_timeout(TIMEOUT_MS)
    page = context.new_page()
    errors: list[str] = []

    def on_console(message: ConsoleMessage) -> None:
        if message.type == "error" and not (expected_error and expected_error in message.text):
            errors.append(message.text)

    def on_dialog(dialog: Dialog) -> None:
        errors.append(dialog.message)
        dialog.dismiss()

    page.on("console", on_console)
    page.on("pageerror", lambda each: errors.append(str(each)))
    page.on("dialog", on_dialog)
    try:
        yield page
    finally:
        context.close()
    assert errors == []
