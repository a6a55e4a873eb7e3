# The server in an image: docker build -t arrayd . ; docker run -v /run/arrayd:/run/arrayd arrayd
FROM debian:12 AS build
RUN apt-get update && apt-get install -y --no-install-recommends make
WORKDIR /src
COPY . .
RUN make deps && make install PREFIX=/usr DESTDIR=/image

FROM debian:12-slim
RUN apt-get update && apt-get install -y --no-install-recommends libssl3 && rm -rf /var/lib/apt/lists/*
RUN useradd --system --home-dir /run/arrayd arrayd && install -d -o arrayd -g arrayd -m 0750 /run/arrayd
COPY --from=build /image/ /
USER arrayd
ENTRYPOINT ["arrayd"]
CMD ["--socket", "/run/arrayd/arrayd.sock"]
