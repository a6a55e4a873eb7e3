"""The documentation site: every link of it leads somewhere, what is searched for is found, and a dead link is an error."""
import html.parser
import importlib.util
import json
import pathlib
import sys
import urllib.parse

import pytest

from commands import TOP, run

pytest.importorskip("mkdocs")

class Links(html.parser.HTMLParser):
    """The targets and the anchors of a page."""

    def __init__(self, text):
        super().__init__()
        self.targets, self.anchors = [], set()
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        values = dict(attributes)
        self.anchors |= {values[name] for name in ("id", "name") if values.get(name)}
        self.targets += [values[name] for name in ("href", "src") if values.get(name)]


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """Make the site from the tables."""
    folder = tmp_path_factory.mktemp("made")
    run(sys.executable, TOP / "docs/generate.py", folder, "1.2.3")
    return folder


@pytest.fixture(scope="module")
def site(made, tmp_path_factory):
    """The built site."""
    folder = tmp_path_factory.mktemp("site")
    run(sys.executable, TOP / "docs/site.py", folder, made)
    return folder


def test_every_link_leads_somewhere(site):
    pages = {path: Links(path.read_text()) for path in site.rglob("*.html") if path.name != "404.html"}
    assert len(pages) > 30
    dead = []
    for page, links in pages.items():
        for target in links.targets:
            parts = urllib.parse.urlsplit(target)
            if parts.scheme or parts.netloc:
                continue
            path = (page.parent / urllib.parse.unquote(parts.path)).resolve() if parts.path else page
            path = path / "index.html" if path.is_dir() else path
            wrong_anchor = parts.fragment and path in pages and parts.fragment not in pages[path].anchors
            if not path.exists() or wrong_anchor:
                dead.append(f"{page.relative_to(site)}: {target}")
    assert not dead


def test_it_needs_no_network(site):
    """Scripts, styles and pictures are the site's own."""
    for page in site.rglob("*.html"):
        text = page.read_text()
        assert '<script src="http' not in text and 'rel="stylesheet" href="http' not in text, page


def test_it_can_be_searched(site):
    index = json.loads((site / "search/search_index.json").read_text())
    places = {entry["location"].partition("#")[0] for entry in index["docs"]}
    assert {"index.html", "docs/guide/sharing.html", "reference/ufuncs.html", "docs/examples/index.html"} <= places
    assert any("logaddexp" in entry["text"] for entry in index["docs"])


def test_the_gallery_has_every_example(site):
    text = (site / "docs/examples/index.html").read_text()
    for path in (TOP / "docs/examples").rglob("*.py"):
        assert str(path.relative_to(TOP / "docs/examples")) in text


def test_a_dead_link_is_told(made, monkeypatch, tmp_path):
    spec = importlib.util.spec_from_file_location("documentation_site", TOP / "docs/site.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    write = module.write_gallery

    def write_wrong(source):
        write(source)
        page = pathlib.Path(source, "docs/guide/sharing.md")
        page.write_text(page.read_text() + "\n[nowhere](nothing-there.md)\n")

    monkeypatch.setattr(module, "write_gallery", write_wrong)
    assert "nothing-there.md" in module.build(tmp_path / "out", made)
