"""tests/run.py counts what sanitizers report, also where the test itself has passed."""
import os
import subprocess

import pytest

from test_sampling import run

# A test that passes, as Criterion has it: its process finds something, and nobody looks at its exit status.
PROGRAM = r"""
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

static int shared = 2147483647;

static void *increment_shared(void *unused) {
    shared++;
    return unused;
}

static void leak_memory(void) {
    char *volatile text = malloc(100);
    text[0] = 'a';
    text = NULL;
}

static void race_threads(void) {
    pthread_t thread;
    shared = 0;
    pthread_create(&thread, NULL, increment_shared, NULL);
    shared++;
    pthread_join(thread, NULL);
}

int main(int argc, char **argv) {
    const int which = argv[argc - 2][0];
    if (!fork()) {
        if (which == 'l') leak_memory();
        if (which == 'r') race_threads();
        if (which == 'o') increment_shared(NULL);
        return 0;
    }
    while (wait(NULL) > 0) continue;
    FILE *xml = fopen(argv[argc - 1], "w");
    fputs("<testsuite><testcase classname=\"a\" name=\"b\"/></testsuite>", xml);
    return fclose(xml);
}
"""


@pytest.mark.parametrize("sanitizer, fault, words", [("address", "leak", "detected memory leaks"), ("thread", "race", "data race"),
                                                     ("undefined", "overflow", "signed integer overflow")])
def test_a_report_is_a_failure(tmp_path, capsys, sanitizer, fault, words):
    source, program, log, xml = tmp_path / "a.c", tmp_path / "a", tmp_path / "a.log", tmp_path / "a.xml"
    source.write_text(PROGRAM)
    subprocess.run(["cc", "-g", "-pthread", f"-fsanitize={sanitizer}", source, "-o", program], check=True)
    environment = {"PATH": os.environ["PATH"], "ASAN_OPTIONS": "detect_leaks=1"}
    said = subprocess.run([program, fault, xml], env=environment, stderr=subprocess.PIPE, text=True, check=True).stderr
    if words not in said:
        pytest.skip(f"the sanitizer does not work here: {said}")
    assert run.run("a", [program, "nothing", xml], xml, log, environment) == (1, 0, 0, 0), log.read_text()
    assert run.run("a", [program, fault, xml], xml, log, environment) == (1, 1, 0, 0), log.read_text()
    run.show_log(log, 0)
    shown = capsys.readouterr().out
    assert "a sanitizer's first report" in shown and words in shown
