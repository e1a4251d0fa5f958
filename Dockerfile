# epochcost in a container, asked in the folder that is mounted as /project:
#
#   docker build --tag epochcost .
#   docker run --rm --volume "$PWD:/project" epochcost cheapest --model resnet50
#
# With CUDA, whose libraries come from the lock, on a host with NVIDIA's container toolkit:
#
#   docker build --build-arg LOCK=gpu --tag epochcost:cuda .
#   docker run --rm --gpus all --volume "$PWD:/project" epochcost:cuda run --provider cuda
FROM python:3.12-slim-bookworm
# report: CPU and the site; gpu: CPU and CUDA, without what builds the site.
ARG LOCK=report
# Revisions are compared by git.
# hadolint ignore=DL3008
RUN apt-get update \
    && apt-get install --yes --no-install-recommends git \
    && rm -rf /var/lib/apt/lists/*
WORKDIR /opt/epochcost
COPY requirements/ requirements/
RUN pip install --no-cache-dir --require-hashes --requirement "requirements/${LOCK}.txt"
COPY . .
RUN pip install --no-cache-dir --no-deps --no-build-isolation . \
    && useradd --create-home --uid 1000 epochcost
USER 1000
WORKDIR /project
ENTRYPOINT ["epochcost"]
CMD ["--help"]
