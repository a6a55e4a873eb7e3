"""Compare three servers that get the same operations: differential.py [--seed S] [--seconds N].

    one by one   each operation is waited for before the next is sent
    late         several at a time, so that they are fused; the CPU backend completes them later, as a GPU does
    killed       several at a time; now and then the worker is killed, and another one goes on with the session

Operations are those of tests/wire/test_any_operation.py: each row of the tables with operands most of which make no sense.
The answers must have the same bytes, or the same error with its code, number, name and text. A difference prints the seed,
the operations and both answers. Seeds count up from S until N seconds are over.
"""
import argparse
import math
import os
import pathlib
import random
import signal
import sys
import time

import msgpack
import numpy as np

TESTS = pathlib.Path(__file__).resolve().parents[1]
for folder in ("wire", "fault"):
    sys.path.insert(0, str(TESTS / folder))

import raw  # noqa: E402
import returning  # noqa: E402
from test_any_operation import SIZE, Chaos, rows  # noqa: E402
from wire_client import CALL, DTYPE, FREE, QUERY, WRITE, view  # noqa: E402

MOST_AT_A_TIME = 6
MOST_ELEMENTS = 1 << 16 # of an output
KILLS = 0.03  # of the rounds of the subject whose workers are killed
ROUNDS = 150  # of a seed
LATE = {"ARRAYD_CPU_LATE": "1"}


class Ids:
    """In the place of a client: gives out buffer ids, and keeps what must be uploaded."""

    def __init__(self):
        self.last, self.uploads = 0, []

    def id(self):
        self.last += 1
        return self.last

    def upload(self, array):
        buffer = self.id()
        self.uploads.append((buffer, array.tobytes()))
        return buffer


class Subject:
    """A session with a server of its own."""

    def __init__(self, name, one_by_one=False, killed=False, env=None):
        self.name, self.one_by_one, self.killed = name, one_by_one, killed
        self.server = raw.Server("--threads=1", env=env)
        self.deaths = 0

    def open(self):
        self.session = returning.Session(self.server.path)

    def upload(self, buffer, data):
        self.session.op("new", [buffer, DTYPE["uint8"], [len(data)]])
        self.session.flush()
        self.session.operations += 1
        self.session.send(raw.frame(msgpack.packb([WRITE, buffer, 0]), data))

    def send(self, message):
        self.session.out += msgpack.packb(message)
        self.session.operations += 1
        self.session.flush()

    def answer(self, name, *fields):
        """The answer to a request: its values and payload, or the error."""
        try:
            return self.session.reply(self.session.ask(name, *fields))
        except raw.Failed as failed:
            return failed.args

    def execute(self, messages):
        """The first error that no result carries, or the answer of a query."""
        if messages[0][0] == QUERY:
            return self.answer("query", *messages[0][1:])
        first = None
        for i, message in enumerate(messages):
            self.send(message)
            if self.one_by_one or i == len(messages) - 1:
                answer = self.answer("sync")
                first = first or (answer if len(answer) == 4 else None)
        return first

    def read(self, description):
        return self.answer("read", description)

    def kill(self):
        """Kill the worker. All that this session did has been answered, so nothing may be lost."""
        os.kill(self.server.worker, signal.SIGKILL)
        self.deaths += 1
        try:
            while True:
                self.session.receive()
        except raw.Closed:
            raw.wait_until(self.come_back, "the session goes on in another worker")

    def come_back(self):
        """Tell whether the session has been taken up. The next worker may not be there yet."""
        try:
            self.session.come_back()
        except raw.Closed as closed:
            if closed.code is not None:
                raise
            return False
        return True


class Difference(AssertionError):
    """Two servers have not answered the same."""


def draw_message(chaos, rng, tables):
    """An operation of a drawn row."""
    kind = rng.choice(("ufunc", "ufunc", "reduction", "call", "call"))
    row = rng.choice(tables[kind])
    if kind == "ufunc":
        return chaos.ufunc(int(row[0]), int(row[2]), int(row[3]))
    if kind == "reduction":
        return chaos.reduce(int(row[0]))
    return chaos.call(int(row[0]), (int(row[2]), int(row[3])), row[4], row[5] == "ASK")


def is_large(message):
    """Whether an output takes long to read, three times."""
    shapes = (output[3] if len(output) > 3 else output[2] for output in message[3] if isinstance(output, list))
    return any(shape and math.prod(shape) > MOST_ELEMENTS for shape in shapes)


def writes_in_place(message):
    """A call that may have begun to write into an array that is there when it finds a wrong index."""
    return message[0] == CALL and any(len(output) > 3 for output in message[3] if isinstance(output, list))


def is_alone(message):
    return message[0] == QUERY or writes_in_place(message)


def draw_round(chaos, rng, tables):
    """Operations that are sent together: one that must be alone, or some others."""
    messages = [draw_message(chaos, rng, tables) for _ in range(rng.randrange(1, MOST_AT_A_TIME + 1))]
    messages = [message for message in messages if not is_large(message)]
    return messages[:1] if messages and is_alone(messages[0]) else [m for m in messages if not is_alone(m)]


def may_differ(answers):
    """Whether an array that is there is lost to a wrong index or value, or keeps its elements, is up to the device
    (protocol/wire.md, section 6)."""
    errors = {answer[0] for answer in answers if answer and len(answer) == 4}
    return bool(errors) and errors <= {"index", "value"}


def compare(subjects, what, ask, lenient=False):
    """The answer, which is that of all subjects. None: they differ, as they may."""
    answers = [ask(subject) for subject in subjects]
    if lenient and may_differ(answers) and any(answer != answers[0] for answer in answers):
        return None
    for subject, answer in zip(subjects[1:], answers[1:]):
        if answer != answers[0]:
            raise Difference(f"{what}:\n  {subjects[0].name}: {str(answers[0])[:600]}\n  {subject.name}: {str(answer)[:600]}")
    return answers[0]


def find_outputs(message):
    """(what a read of it takes, id if the operation makes the buffer) for each output that is an array with a shape."""
    for output in message[3]:
        if isinstance(output, list) and len(output) == 3 and output[2] is not None:
            yield [output[0], output[1], 0, output[2]], output[0]
        elif isinstance(output, list) and len(output) > 3:
            yield output, None


def run_round(subjects, messages):
    """Run some operations. Returns how many outputs have a value."""
    values, lenient = 0, writes_in_place(messages[0])
    compare(subjects, messages, lambda s: s.execute(messages), lenient)
    made = [o[0] for m in messages for o in m[3] if isinstance(o, list) and len(o) == 3]
    for message in messages:
        for description, _ in find_outputs(message):
            answer = compare(subjects, f"an output {description} of {messages}", lambda s: s.read(description),
                             lenient)
            values += answer is not None and len(answer) == 2
    for subject in subjects:
        subject.send([FREE, made])
    compare(subjects, f"freeing the outputs of {messages}", lambda s: s.answer("sync"))
    return values


def renew_buffers(subjects, chaos, lenient):
    """Compare the operands. One that has failed makes way to a new one."""
    for i, buffer in enumerate(chaos.buffers):
        answer = compare(subjects, f"buffer {buffer}", lambda s: s.read(view(buffer, "uint8", [SIZE])), lenient)
        if answer and len(answer) != 4:
            continue
        data = np.random.default_rng(buffer).integers(-4, 4, SIZE // 8).tobytes()
        chaos.buffers[i] = chaos.client.id()
        for subject in subjects:
            subject.send([FREE, [buffer]])
            subject.upload(chaos.buffers[i], data)


def run_seed(subjects, seed, rounds=ROUNDS):
    """Run a seed. Returns how many operations it had, and how many outputs with values; raises Difference."""
    rng, ids, count, values = random.Random(seed), Ids(), 0, 0
    tables = {table: rows(table) for table in ("ufunc", "reduction", "call")}
    chaos = Chaos(ids, seed)
    for subject in subjects:
        subject.open()
        for buffer, data in ids.uploads:
            subject.upload(buffer, data)
    for _ in range(rounds):
        messages = draw_round(chaos, rng, tables)
        if not messages:
            continue
        values += run_round(subjects, messages)
        count += len(messages)
        if rng.random() < 0.2 or writes_in_place(messages[0]):
            renew_buffers(subjects, chaos, writes_in_place(messages[0]))
        if rng.random() < KILLS:
            for subject in subjects:
                if subject.killed:
                    subject.kill()
    for subject in subjects:
        subject.session.close()
    return count, values


def start_subjects():
    return [Subject("one by one", one_by_one=True), Subject("late", env=LATE), Subject("killed", killed=True)]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seed", type=int, default=0, help="the first seed (0)")
    parser.add_argument("--seconds", type=float, default=60, help="no seed begins after so many seconds (60); 0: one seed")
    options = parser.parse_args()
    subjects, seed, all_of_them, end = start_subjects(), options.seed, [0, 0], time.monotonic() + options.seconds
    try:
        while seed == options.seed or time.monotonic() < end:
            all_of_them = [a + b for a, b in zip(all_of_them, run_seed(subjects, seed))]
            seed += 1
    except Difference as difference:
        print(f"seed {seed}: {difference}\nagain: tests/fuzz/differential.py --seed {seed} --seconds 0")
        return 1
    finally:
        for subject in subjects:
            subject.server.stop()
    print(f"{all_of_them[0]} operations with {all_of_them[1]} values, seeds {options.seed} to {seed - 1}: the same on "
          f"{len(subjects)} servers, {sum(s.deaths for s in subjects)} workers killed")
    return 0


if __name__ == "__main__":
    sys.exit(main())
