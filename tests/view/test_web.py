"""Pages that a search found: their titles and addresses are data of others, on every surface."""

from __future__ import annotations

import pytest

from nbagent.view.web import cited, page, pages_html, pages_lines


@pytest.mark.parametrize(
    "url", ["javascript:alert(1)", "data:text/html,x", "//evil", "http://a/'x", "http://a/<b>", ""]
)
def test_only_whole_addresses_of_the_web_become_links(url):
    found = page({"url": url, "title": "t"})
    assert found.url == "" and "<a" not in pages_html([found]) and pages_lines([found]) == ["t"]


@pytest.mark.parametrize("odd", ["\u202e", "\x1b[2J", "\x00", "\u200b", "ä"])
def test_characters_that_do_something_to_a_screen_are_written_as_codes(odd):
    block = {"url": f"https://example.org/{odd}x", "title": f"a{odd}b"}
    shown = pages_html([page(block)]) + "\n".join(pages_lines([page(block)])) + cited([{"citations": [block]}])
    assert odd == "ä" or odd not in shown
    assert f"https://example.org/{odd}" not in shown and "https://example.org/%" in shown


def test_the_server_that_is_really_asked_is_named():
    assert "evil.example" in pages_html([page({"url": "https://google.com@evil.example/", "title": "Google"})])
