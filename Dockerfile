# A Kohort node in a container, with the commands and the console:
#     docker build -t kohort .
#     docker run --rm -p 9092:9092 -v kohort-data:/data kohort
FROM python:3.12-slim AS build
WORKDIR /src
COPY pyproject.toml constraints.txt README.md LICENSE CHANGELOG.md ./
COPY src src
RUN PIP_CONSTRAINT=constraints.txt pip wheel --no-cache-dir --wheel-dir /wheels ".[admin]"

FROM python:3.12-slim
COPY --from=build /wheels /wheels
RUN pip install --no-cache-dir /wheels/*.whl \
    && rm -r /wheels \
    && install --directory --owner 1000 --mode 0700 /data
USER 1000
VOLUME /data
EXPOSE 9092
ENTRYPOINT ["kohort"]
# Clients outside of the container reach it under the published port of this machine.
CMD ["serve", "--listen", "0.0.0.0:9092", "--data", "/data", \
     "--advertise", "localhost:9092"]
