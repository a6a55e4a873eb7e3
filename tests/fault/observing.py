"""Runs arrayctl, and reads its socket and what the server gives by HTTP."""
import contextlib
import http.client
import json
import os
import re
import subprocess

import numpy as np
from prometheus_client.parser import text_string_to_metric_families

import raw
from places import port_of

CTL = raw.BUILD / "bin" / "arrayctl"
METRICS = "--metrics=127.0.0.1:0"
GOOD, BAD, USAGE, NO_SERVER = 0, 1, 2, 3
# Figures that stat itself changes.
MOVING = {"requests", "bytes_out", "bytes_in", "device_us"}


def clean():
    return {k: v for k, v in os.environ.items() if not k.startswith(("ARRAYD_URL", "XDG_RUNTIME"))}


def ctl(server, *arguments, expect=GOOD):
    """Return arrayctl's standard output, or its standard error when it is to fail."""
    where = [] if server is None else [f"--socket={server.path}"]
    done = subprocess.run([CTL, *arguments, *where], capture_output=True, text=True, timeout=raw.WINDOW, env=clean())
    assert done.returncode == expect, done
    return done.stdout if expect == GOOD else done.stderr


def see(server, command="status", expect=GOOD):
    done = subprocess.run([CTL, command, "--json", f"--socket={server.path}"], capture_output=True, text=True,
                          timeout=raw.WINDOW, env=clean())
    assert done.returncode == expect, done
    return json.loads(done.stdout)


def get(server, path, method="GET", headers=None, body=None):
    """Status and text of a page."""
    connection = http.client.HTTPConnection("127.0.0.1", port_of(server, "metrics"), timeout=raw.WINDOW)
    with contextlib.closing(connection):
        connection.request(method, path, body=body, headers=headers or {})
        answer = connection.getresponse()
        return answer.status, answer.read().decode()


def metrics(server):
    """Samples by name and labels, as Prometheus reads them."""
    status, text = get(server, "/metrics")
    assert status == 200
    found = {}
    for family in text_string_to_metric_families(text):
        assert family.documentation and family.type in ("counter", "gauge")
        for s in family.samples:
            key = s.name, tuple(sorted(s.labels.items()))
            assert key not in found
            found[key] = s.value
    return found


def metric_rows():
    """Counter, scope, kind, metric and scale of each row."""
    text = (raw.TOP / "protocol" / "counter.def").read_text()
    return re.findall(r'^AD_COUNTER\(\d+, (\w+), (\w+), (\w+), "(\w*)", ([^,]+),', text, re.M)


def work(client, n, times):
    """Known contents: `times` arrays of n float64, kept."""
    x = client.put(np.arange(float(n)))
    kept = [client.ufunc("add", "float64", [n], x, 1.5) for _ in range(times)]
    client.sync()
    return kept


def session_of(server, client):
    """Return what arrayctl says of a client's session."""
    name = str(client.welcome[3])
    return next(s for s in see(server, "sessions") if s["session"] == name)


def connect_control(server):
    return raw.connect(server.path + ".ctl")


def read_all(s):
    data = b""
    while part := s.recv(65536):
        data += part
    return data
