"""A load generator: load.py URL ITEMS [--requests N] [--connections N]; needs Python alone.

Asks URL/similar/ITEM over connections that are kept, each in a thread of its own, for random items. Prints JSON: requests
a second, milliseconds of the median and of the 99th percentile, and the workers' process ids.
"""
import argparse
import http.client
import json
import random
import threading
import time
import urllib.parse


class Connection(threading.Thread):
    """One client that asks for an item after the other."""

    def __init__(self, address, items):
        super().__init__()
        self.items, self.times, self.processes, self.answers, self.error = items, [], set(), {}, None
        self.connection = http.client.HTTPConnection(*address, timeout=120)

    def ask(self, item):
        """The service's answer."""
        self.connection.request("GET", f"/similar/{item}")
        response = self.connection.getresponse()
        body = response.read()
        if response.status != 200:
            raise RuntimeError(f"item {item}: status {response.status}: {body[:200]!r}")
        return json.loads(body)

    def run(self):
        try:
            for item in self.items:
                begin = time.perf_counter()
                answer = self.ask(item)
                self.times.append(time.perf_counter() - begin)
                self.processes.add(answer["process"])
                self.answers[item] = answer["similar"]
        except Exception as error:  # told by whoever waits for the thread
            self.error = error
        finally:
            self.connection.close()


def percentile(times, part):
    """The time that so many of them do not exceed."""
    ordered = sorted(times)
    return ordered[min(len(ordered) - 1, int(part * len(ordered)))]


def generate(url, items, requests=400, connections=16, seed=1):
    """Ask, and say how it went: a dict."""
    parsed = urllib.parse.urlsplit(url)
    wanted = random.Random(seed).choices(range(items), k=requests)
    clients = [Connection((parsed.hostname, parsed.port), wanted[i::connections]) for i in range(connections)]
    begin = time.perf_counter()
    for client in clients:
        client.start()
    for client in clients:
        client.join()
    seconds = time.perf_counter() - begin
    for client in clients:
        if client.error:
            raise client.error
    times = [t for client in clients for t in client.times]
    return {"requests": len(times), "per_second": len(times) / seconds, "p50_ms": percentile(times, 0.5) * 1e3,
            "p99_ms": percentile(times, 0.99) * 1e3, "processes": sorted(set().union(*(c.processes for c in clients))),
            "answers": {item: found for client in clients for item, found in client.answers.items()}}


def main():
    """Send the requests of the command line, and print how they were answered."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("url")
    parser.add_argument("items", type=int)
    parser.add_argument("--requests", type=int, default=400)
    parser.add_argument("--connections", type=int, default=16)
    options = parser.parse_args()
    result = generate(options.url, options.items, options.requests, options.connections)
    del result["answers"]
    print(json.dumps(result))


if __name__ == "__main__":
    main()
