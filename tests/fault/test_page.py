"""The page for people: what a browser makes of it, where there is one, and what can be seen without."""
import html.parser
import os
import re
import shutil
import subprocess

import pytest

import raw
from places import port_of
from raw import Client
from observing import METRICS, get, see, work

BROWSER = next(filter(None, map(shutil.which, ("chromium", "chromium-shell", "chromium-browser", "google-chrome"))), None)


class Page(html.parser.HTMLParser):
    """Elements by id, the texts of the cells of each table's body, and what the page refers to."""

    def __init__(self, text):
        super().__init__()
        self.ids, self.rows, self.links, self.meters, self.texts = {}, {}, [], [], {}
        self.body = self.open = None
        self.scripts = 0
        self.feed(text)
        self.close()

    def handle_starttag(self, tag, attributes):
        a = dict(attributes)
        self.scripts += tag == "script" and "src" not in a
        self.links += [a[k] for k in ("src", "href") if k in a]
        assert not any(k.startswith("on") for k in a), "a handler in the page would be blocked"
        if "id" in a:
            assert a["id"] not in self.ids, "an id that is there twice"
            self.ids[a["id"]] = tag
            self.open = a["id"]
        if tag == "tbody":
            self.body = self.rows.setdefault(a["id"], [])
        if tag == "tr" and self.body is not None:
            self.body.append([])
        if tag == "td":
            self.body[-1].append("")
        if tag == "meter":
            self.meters.append((float(a["value"]), float(a["max"])))

    def handle_endtag(self, tag):
        self.body = None if tag == "tbody" else self.body
        self.open = None

    def handle_data(self, data):
        if self.body and self.body[-1]:
            self.body[-1][-1] += data
        elif self.open:
            self.texts[self.open] = self.texts.get(self.open, "") + data


def test_without_a_browser(start):
    """All that the script names is there: elements of the page, members of the server's answer."""
    server = start(METRICS)
    client = Client(server.path)
    work(client, 100, 1)
    pages = {path: get(server, path) for path in ("/", "/page.js", "/page.css")}
    assert all(status == 200 for status, _ in pages.values())
    page, script = Page(pages["/"][1]), pages["/page.js"][1]
    assert page.scripts == 0
    assert set(page.links) <= {"data:,", "page.css", "page.js", "metrics", "health", "status.json"}
    for path in set(page.links) - {"data:,"}:
        assert get(server, f"/{path}")[0] == 200, path
    assert not re.search(r"https?://(?!www\.w3\.org/2000/svg)|innerHTML|outerHTML|insertAdjacent|document\.write|eval",
                         script)
    named = set(re.findall(r'element\("([\w-]+)"\)', script)) | set(re.findall(r'line\("([\w-]+)"', script))
    assert named <= set(page.ids) and len(named) > 8
    seen = see(server)
    session, worker = seen["sessions"][0], seen["workers"][0]
    counters = set(re.findall(r"counters\.(\w+)", script)) | set(re.findall(r'(?:all|sum|rate)\((?:s, )?"(\w+)"', script))
    assert counters and counters <= set(session["counters"])
    assert set(re.findall(r"\bs\.(\w+)\b(?!\()", script)) - {"counters"} <= set(session)
    assert set(re.findall(r"\bw\.(\w+)\b", script)) <= set(worker)
    assert set(re.findall(r"\bd\.(\w+)\b", script)) <= set(worker["devices"][0])
    assert set(re.findall(r"\ba\.(\w+)\b", script)) - {"counters"} <= set(seen["arrayd"])


@pytest.mark.skipif(not BROWSER, reason="there is no Chromium here")
def test_in_a_browser(start, tmp_path):
    server = start(METRICS)
    odd = "<img src=x onerror=\"document.title='bad'\">&amp;"
    clients = [Client(server.path, greet=False), Client(server.path)]
    clients[0].send(raw.hello(client=odd))
    clients[0].welcome = clients[0].receive_message()
    work(clients[0], 1 << 17, 2)
    work(clients[1], 1 << 17, 7)
    seen = subprocess.run(
        [BROWSER, "--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", f"--user-data-dir={tmp_path}",
         "--virtual-time-budget=4000", "--dump-dom", f"http://127.0.0.1:{port_of(server, 'metrics')}/"],
        capture_output=True, text=True, timeout=120, env={**os.environ, "HOME": str(tmp_path)})
    page = Page(seen.stdout)
    assert page.texts["front"].startswith("version ") and f"process {server.pid}" in page.texts["front"], seen
    assert "<title>arrayd</title>" in seen.stdout
    assert page.texts["memory"] == "11 MiB" and page.texts["count"] == "2"
    first, second = page.rows["sessions"]
    assert first[:2] == [str(clients[1].welcome[3]), f"uid:{os.getuid()}"] and first[3:5] == ["8", "8.0 MiB"]
    assert second[0] == str(clients[0].welcome[3]) and second[2].startswith(odd) and second[3:5] == ["3", "3.0 MiB"]
    assert (8 << 20, 8 << 20) in page.meters and (3 << 20, 8 << 20) in page.meters
    worker, = page.rows["workers"]
    assert worker[1] == str(server.worker) and worker[2] == "ready"
    assert seen.stdout.count("<polyline") == 3
