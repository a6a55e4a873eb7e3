#!/bin/sh
# CUDA from the Python packages that NVIDIA publishes, laid out as the toolkit is:
#   cuda.sh toolkit FOLDER VERSION      what building needs (VERSION: 13.0)
#   cuda.sh libraries FOLDER TARGET     of the toolkit in FOLDER what running needs, into TARGET
set -eu

# What libarrayd-cuda.so is linked with, what those load, and the compiler of users' kernels.
run="libcublas.so.13 libcublasLt.so.13 libcufft.so.12 libcusolver.so.12 libcusparse.so.12 libnvJitLink.so.13
     libnvrtc.so.13 libnvrtc-builtins.so.13.*"

toolkit() {
    folder=$1 version=$2
    scratch=$(mktemp -d)
    python3 -m venv "$scratch/venv"
    "$scratch/venv/bin/pip" install --quiet --no-cache-dir --no-compile \
        "cuda-toolkit[nvcc,crt,nvvm,cudart,cccl,cublas,cufft,cusolver,nvrtc,profiler]==$version.*"
    mkdir -p "$(dirname "$folder")"
    mv "$scratch"/venv/lib/python3*/site-packages/nvidia/cu* "$folder"
    rm -rf "$scratch"
    ln -sfn lib "$folder/lib64"
    # The packages have no names without a version, which are what a linker looks for.
    for library in "$folder"/lib/lib*.so.*; do
        ln -sf "${library##*/}" "${library%%.so.*}.so"
    done
    chmod +x "$folder"/bin/* "$folder"/nvvm/bin/*
}

libraries() {
    folder=$1 target=$2
    mkdir -p "$target/lib"
    for name in $run; do
        # shellcheck disable=SC2086
        cp -L $folder/lib/$name "$target/lib/"
    done
    ln -sfn lib "$target/lib64"
    cp -r "$folder/include" "$target/include" # kernels of users include cuda_fp16.h, cooperative_groups.h ...
}

case "${1:-}" in
toolkit) toolkit "$2" "$3" ;;
libraries) libraries "$2" "$3" ;;
*)
    sed -n '2,4s/^# //p' "$0" >&2
    exit 2
    ;;
esac
