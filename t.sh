#!/bin/bash
cd /tmp/d_merge; find build/release/python/arrayd -xtype l -delete; cp -rsf /tmp/d_merge/client-python/arrayd/. build/release/python/arrayd/
export PYTHONPATH=/tmp/d_merge/build/release/python ARRAYD_BUILD=/tmp/d_merge/build/release
case "$1" in tests*) exec build/venv/bin/python -m pytest -q -p no:cacheprovider "$@";; *) exec build/venv/bin/python "$@";; esac
