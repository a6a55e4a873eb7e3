#!/bin/sh
# Debian packages that building and testing need. `packages.sh install` installs those that are missing, with sudo
# where the caller is not root; `packages.sh check` only says which they are. `packages.sh rest` also installs what
# `make test-rest` can do without, where CI is set.
set -eu

packages="gcc g++ pkg-config libuv1-dev libmsgpack-dev libinih-dev libcriterion-dev libopenblas-dev liblapacke-dev libssl-dev libmicrohttpd-dev libjansson-dev"
packages="$packages iproute2 systemd" # for tests

# The first Python that is new enough, as the Makefile looks for it.
find_python() {
    for python in python3 python3.11 python3.12 python3.13 python3.14; do
        "$python" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && return
    done
    python=
}
need_python() {
    find_python
    test "$python" || {
        echo "deps: Python 3.11 or newer is needed, and what is here is $(python3 --version 2>/dev/null || echo none)." \
             "Install one beside it, so that python3.11 (or .12 to .14) is on the path, and run this again." >&2
        exit 1
    }
}

if ! command -v dpkg-query >/dev/null; then
    echo "deps: not a Debian system, so nothing is checked; needed are the equivalents of: $packages," \
         "Python 3.11 or newer with its headers and venv" >&2
    need_python
    exit 0
fi

find_python
test "$python" && "$python" -c 'import venv, ensurepip' 2>/dev/null || packages="$packages python3-venv"
header='import sysconfig, os; raise SystemExit(not os.path.exists(sysconfig.get_path("include") + "/Python.h"))'
test "$python" && "$python" -c "$header" 2>/dev/null || packages="$packages python3-dev"

missing=
for p in $packages; do
    status=$(dpkg-query -W -f '${Status}' "$p" 2>/dev/null || true)
    test "$status" = "install ok installed" || missing="$missing $p"
done
# The page for people is tested in a browser, the client's image in a root of Debian's, packages by lintian, the C library
# by other compilers, where there are the programs for it; only CI is made to get them.
more=
if [ "${CI:-}${1:-check}" = truerest ] && { [ "$(id -u)" = 0 ] || command -v sudo >/dev/null; }; then
    for p in chromium debootstrap lintian fakeroot valgrind cmake clang fish spin; do
        command -v "$p" >/dev/null || more="$more $p"
    done
    command -v dh_python3 >/dev/null || more="$more debhelper dh-python"
    command -v qemu-aarch64-static >/dev/null || more="$more qemu-user-static"
fi
test "$missing$more" || {
    need_python
    exit 0
}

if [ "${1:-check}" = check ]; then
    echo "deps: missing Debian packages:$missing (\`make deps\` installs them)" >&2
    exit 1
fi
sudo=
if [ "$(id -u)" != 0 ]; then
    sudo=sudo
    command -v sudo >/dev/null || {
        echo "deps: neither root nor sudo here. Have somebody run: apt-get install$missing" >&2
        exit 1
    }
fi
echo "deps: installing$missing$more"
$sudo apt-get update -q
# shellcheck disable=SC2086
test -z "$missing" || $sudo env DEBIAN_FRONTEND=noninteractive apt-get install -y -q --no-install-recommends $missing || {
    echo "deps: apt-get could not install$missing" >&2
    exit 1
}
for p in $more; do
    $sudo env DEBIAN_FRONTEND=noninteractive apt-get install -y -q --no-install-recommends "$p" ||
        echo "deps: no $p to be had; what is tested with it is not"
done >&2
need_python
