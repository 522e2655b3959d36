"""A real browser, the system's Chromium, and a page that notices what goes wrong in it."""

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

LONG_MS = 30_000


def find_chromium() -> str:
    for name in NAMES:
        if found := shutil.which(name):
            return found
    raise Unavailable(f"there is no browser: none of {', '.join(NAMES)} is installed")


@contextmanager
def open_browser() -> Iterator[Browser]:
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=find_chromium(),
            # In a container there is often no user namespace to make a sandbox of; pages are ours.
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
def open_page(browser: Browser, *, refusal: str = "", **options: Any) -> Iterator[Page]:
    """Fails where the page said an error, ran one, or opened a dialog.

    A browser also calls it an error when a page is answered by a refusal, which a test may want.
    """
    context = browser.new_context(**{"viewport": DESKTOP, **options})
    context.set_default_timeout(LONG_MS)
    page = context.new_page()
    wrong: list[str] = []

    def note(said: ConsoleMessage) -> None:
        if said.type == "error" and not (refusal and refusal in said.text):
            wrong.append(said.text)

    def refuse(dialog: Dialog) -> None:
        wrong.append(dialog.message)
        dialog.dismiss()

    page.on("console", note)
    page.on("pageerror", lambda each: wrong.append(str(each)))
    page.on("dialog", refuse)
    try:
        yield page
    finally:
        context.close()
    assert wrong == []
