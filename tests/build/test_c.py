"""C and C++ programs get all that they need: a header for every compiler, a CMake package, manual pages for every
function, and completions of shells for the programs."""
import os
import re
import shutil
import subprocess

import pytest

import pages
from commands import BUILD, COMMAND, TOP, run

STRICT = ["-Wall", "-Wextra", "-Wpedantic", "-Werror", "-fsyntax-only"]
CASES = [(compiler, f"c{year}", "c") for compiler in ("gcc", "clang") for year in ("11", "17")] + [
    (compiler, f"c++{year}", "cpp") for compiler in ("g++", "clang++") for year in ("11", "14", "17", "20")]
# Every inline function and initialiser of the header, and a function of each table.
USES = """
#include <arrayd.h>
static ad_options options = AD_OPTIONS_INIT;
int main(void) {
    ad_options mine = AD_OPTIONS_INIT;
    ad_array *out;
    ad_in x[4];
    x[0] = ad_of(NULL), x[1] = ad_int(1), x[2] = ad_float(2.5), x[3] = ad_complex(1, -1);
    if (x[1].value.as.i != 1 || x[2].value.as.f != 2.5 || x[3].value.as.c[1] != -1 || x[3].value.dtype != -1) return 1;
    if (!mine.all || mine.dtype != -1 || mine.casting != 3 || mine.where || options.axes) return 2;
    return ad_add(x[0], x[1], &out) == 0 || ad_sum(x[0], &out) == 0 || ad_version()[0] == 0;
}
"""


@pytest.fixture
def environment(installed):
    """Return the environment for building and running against the installation."""
    usr = installed / "usr"
    return {**os.environ, "PKG_CONFIG_PATH": str(usr / "lib/pkgconfig"), "PKG_CONFIG_SYSROOT_DIR": str(installed),
            "LD_LIBRARY_PATH": str(usr / "lib"), "PATH": f"{usr / 'bin'}:{os.environ['PATH']}",
            "ARRAYD_URL": "embedded:cpu", "PYTHONPATH": ""}


@pytest.mark.parametrize("compiler, standard, suffix", CASES, ids=lambda v: str(v))
def test_header_is_strict(compiler, standard, suffix, tmp_path):
    if not shutil.which(compiler):
        pytest.skip(f"no {compiler} here")
    source = tmp_path / f"uses.{suffix}"
    source.write_text(USES)
    run(compiler, f"-std={standard}", *STRICT, "-Iclient-c/include", "-I.", source)


@pytest.mark.skipif(BUILD.name != "release", reason="sanitizers must be linked into the program")
@pytest.mark.parametrize("standard", ["c11", "c++11"])
def test_header_says_what_it_means(standard, environment, tmp_path):
    """The inline functions give the same values in both languages."""
    source = tmp_path / ("uses.cpp" if "++" in standard else "uses.c")
    source.write_text(USES)
    flags = run("pkg-config", "--cflags", "--libs", "arrayd", env=environment).split()
    run("g++" if "++" in standard else "gcc", f"-std={standard}", source, "-o", tmp_path / "uses", *flags)
    run(tmp_path / "uses", env=environment)


# ---- the first program ----

@pytest.mark.skipif(BUILD.name != "release", reason="sanitizers must be linked into the program")
def test_the_first_program_frees_what_it_makes(environment, tmp_path):
    """Nothing that the C program of the first page has allocated is left when it ends."""
    if not shutil.which("valgrind"):
        pytest.skip("no valgrind here")
    programs = [block for block in pages.blocks((TOP / "README.md").read_text()) if block.language == "c"]
    assert len(programs) == 1
    (tmp_path / "example.c").write_text(programs[0].text)
    flags = run("pkg-config", "--cflags", "--libs", "arrayd", env=environment).split()
    run("cc", *pages.FLAGS, "-g", tmp_path / "example.c", "-o", tmp_path / "example", *flags)
    said = run("valgrind", "--error-exitcode=9", "--leak-check=full", "--show-leak-kinds=definite,indirect,possible",
               "--errors-for-leak-kinds=definite,indirect,possible", tmp_path / "example", env=environment)
    assert re.search(r"^90$", said, re.M), said
    assert "no leaks are possible" in said or "definitely lost: 0 bytes" in said, said


# ---- CMake ----

PROJECT = """
cmake_minimum_required(VERSION 3.13)
project(uses C)
find_package(arrayd 0.1 REQUIRED)
add_executable(shared sum.c)
target_link_libraries(shared arrayd::arrayd)
add_executable(static sum.c)
target_link_libraries(static arrayd::static)
"""


@pytest.mark.skipif(BUILD.name != "release", reason="sanitizers must be linked into the program")
@pytest.mark.skipif(not shutil.which("cmake"), reason="no cmake here")
def test_cmake_package(installed, environment, tmp_path):
    """A project finds the package where it was moved to, and links with both libraries."""
    (tmp_path / "CMakeLists.txt").write_text(PROJECT)
    shutil.copyfile(TOP / "client-c/examples/sum.c", tmp_path / "sum.c")
    run("cmake", "-S", tmp_path, "-B", tmp_path / "made", f"-DCMAKE_PREFIX_PATH={installed}/usr", env=environment)
    run("cmake", "--build", tmp_path / "made", env=environment)
    first = run(tmp_path / "made/shared", env=environment)
    assert first and run(tmp_path / "made/static", env=environment) == first
    assert "libarrayd.so.0" not in run("readelf", "-d", tmp_path / "made/static")
    (tmp_path / "CMakeLists.txt").write_text(PROJECT.replace("arrayd 0.1", "arrayd 7.0"))
    done = subprocess.run(["cmake", "-S", tmp_path, "-B", tmp_path / "other", f"-DCMAKE_PREFIX_PATH={installed}/usr"],
                          capture_output=True, text=True, env=environment, timeout=COMMAND)
    assert done.returncode != 0 and "compatible" in done.stderr


# ---- manual pages ----

def test_every_function_has_a_manual_page(installed):
    """Each function has a page of its own name, as `man ad_add` looks for it. The page that it includes is there and
    names it."""
    folder = installed / "usr/share/man/man3"
    symbols = run("nm", "-D", "--defined-only", installed / "usr/lib/libarrayd.so.0").splitlines()
    functions = {line.split()[-1].split("@")[0] for line in symbols if " T " in line}
    assert len(functions) > 200
    missing = sorted(name for name in functions if not (folder / f"{name}.3").exists())
    assert not missing
    for page in folder.glob("*.3"):
        text = page.read_text()
        if text.startswith(".so "):
            target = folder.parent / text.split()[1]
            assert target.exists() and not target.read_text().startswith(".so "), page
            assert page.stem in functions, f"{page} is of no function"


@pytest.mark.skipif(not shutil.which("man"), reason="no man here")
@pytest.mark.parametrize("name", ["ad_slice", "ad_hypot", "ad_sum", "arrayd"])
def test_man_finds_them(installed, name):
    text = run("man", "-M", installed / "usr/share/man", "3", name, env={**os.environ, "MANPAGER": "cat", "MANWIDTH": "100"})
    assert "SYNOPSIS" in text and "arrayd.h" in text


# ---- completions ----

def complete(installed, program, *words):
    """Return what bash offers for the last word."""
    script = f"""
source {installed}/usr/share/bash-completion/completions/{program}
compopt() {{ :; }}
COMP_WORDS=("$@") COMP_CWORD=$(($# - 1))
_{program}
printf '%s\\n' "${{COMPREPLY[@]}}"
"""
    return run("bash", "-c", script, "bash", program, *words).split()


def test_options_are_completed(installed):
    options = re.findall(r'^AD_OPTION\("([^"]+)"', (TOP / "protocol/option.def").read_text(), re.M)
    offered = complete(installed, "arrayd", "--")
    assert {f"--{name}=" for name in options} <= set(offered) and "--help" in offered
    assert complete(installed, "arrayd", "--back") == ["--backend=", "--backend-path="]
    assert complete(installed, "arrayd", "--backend", "=", "c") == ["cpu", "cuda"]
    assert complete(installed, "arrayd", "--backend", "=") == ["auto", "cpu", "cuda"]
    assert complete(installed, "arrayd", "--tcp-open", "=", "y") == ["yes"]


def test_words_are_those_that_the_server_takes(installed):
    """An option with a fixed choice offers exactly what arrayd accepts."""
    for option in ("backend", "domains", "kernels", "log-level"):
        done = subprocess.run([BUILD / "bin/arrayd", f"--{option}=nonsense"], capture_output=True, text=True)
        accepted = re.search(r"expected one of: ([a-z ]+)", done.stderr)[1].split()
        assert complete(installed, "arrayd", f"--{option}", "=") == accepted


def test_commands_are_completed(installed):
    commands = re.findall(r"^AD_COMMAND\((\w+)", (TOP / "server/ctl/command.def").read_text(), re.M)
    assert set(commands) <= set(complete(installed, "arrayctl", ""))
    assert complete(installed, "arrayctl", "se") == ["sessions"]
    assert complete(installed, "arrayctl", "top", "--int") == ["--interval="]


@pytest.mark.parametrize("shell, file", [("zsh", "zsh/vendor-completions/_arrayd"),
                                         ("zsh", "zsh/vendor-completions/_arrayctl"),
                                         ("fish", "fish/vendor_completions.d/arrayd.fish"),
                                         ("fish", "fish/vendor_completions.d/arrayctl.fish")])
def test_other_shells_can_read_theirs(installed, shell, file):
    if not shutil.which(shell):
        pytest.skip(f"no {shell} here")
    run(shell, "-n", installed / "usr/share" / file)
