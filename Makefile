# Amber's verbs. They need Python 3.11 or newer and nothing else: what they use goes into .venv,
# again whenever the pinned requirements change.

# The oldest that will do comes first: most wheels exist for it. Shims that fail are passed over.
PYTHON ?= $(shell for python in python3.11 python3.12 python3.13 python3 python; do \
	$$python -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && echo $$python && break; \
	done)
BIN := .venv/bin
CODE := amber engine accounts providers memory libraries tools assistants chats operations public_api bench tests

.PHONY: run test messages habits test-mcp test-web web-vendor web-modules check-web web-pictures tour-pictures widget check docs diagrams lint types layers migrations check-image bench bench-scale bench-quality requirements installed installed-dev test-widget widget-picture browser test-clients clients test-fuzz test-cluster

run: installed  ## Everything on this machine, until Ctrl-C
	@exec $(BIN)/python manage.py up

# Five workers for two cores, CI's size: three of them mostly wait for the platforms of end-to-end
# tests, while two compute. Each has its own database and Redis database.
# Whoever has nothing left to do takes from the other; tests/fixtures/schedule.py says what begins.
PYTEST_ARGS ?= -n 5 --dist worksteal
# Compiled files are kept: tests start Amber's processes dozens of times.
test: installed-dev  ## The whole test suite; servers are started for it
	@echo "The whole suite takes some 16 minutes on two cores."
	PYTHONDONTWRITEBYTECODE= $(BIN)/python -m pytest -p tests.services $(PYTEST_ARGS)

messages: installed-dev  ## The files with translations: new texts in, old ones out, compiled; nothing but Python is needed
	$(BIN)/python -m tests.house.messages

habits: installed-dev  ## Write the table of habits in docs/providers.md as the test finds them
	AMBER_WRITE_HABITS=1 $(BIN)/python -m pytest -p tests.services tests/e2e/test_meet_habits.py

# The newest conformance suite that runs with Node 20.
test-mcp: installed-dev  ## MCP tools and the MCP server against what the protocol's authors have for it (needs npm)
	npm install --silent --no-audit --no-fund --prefix var/mcp @modelcontextprotocol/server-everything@2026.8.31 \
	@modelcontextprotocol/conformance@0.1.10
	$(BIN)/python -m pytest -p tests.services tools/tests/mcp/test_use_everything_server.py public_api/tests/mcp/test_keep_to_mcp.py

test-clients: installed-dev clients  ## Other people's clients against /v1; what cannot be installed is skipped
	@rm -rf var/clients/said && mkdir -p var/clients/said
	SAID_FOLDER=$(CURDIR)/var/clients/said $(BIN)/python -m pytest -p tests.services $(PYTEST_ARGS) public_api
	CLIENTS=1 $(BIN)/python -m pytest -p tests.services tests/clients

# Each Python client has a venv of its own, so that none decides what another gets.
# litellm needs mcp for tools, but does not say so.
CLIENTS_OF_PYTHON := langchain-openai==1.7.3 litellm==1.106.2,mcp==2.3.0 llm==0.36
CLIENTS_OF_NODE := openai@6.49.0 ai@6.0.326 @ai-sdk/openai@3.0.141 @ai-sdk/openai-compatible@2.0.87 zod@4.6.7
# The newest of OpenAI's types, beside a client that runs with an older Node; and what reads them.
PUBLISHED_TYPES := published@npm:openai@7.57.0 typescript@5.9.3
clients: $(BIN)/python
	@mkdir -p var/clients/node
	@npm install --silent --no-audit --no-fund --prefix var/clients/node $(CLIENTS_OF_NODE) $(PUBLISHED_TYPES) \
	|| echo "No clients for Node: is npm installed?"
	@for client in $(CLIENTS_OF_PYTHON); do venv=var/clients/$${client%%=*}; \
	grep -qsx "$$client" $$venv/installed || { rm -f $$venv/installed; $(BIN)/python -m venv $$venv \
	&& $$venv/bin/python -m pip install -q --disable-pip-version-check $$(echo $$client | tr , " ") \
	&& echo "$$client" > $$venv/installed || echo "$$client could not be installed"; }; done

# Schemathesis wants other versions of what the suite uses, so it has a venv of its own, too.
FUZZ_SECONDS ?= 300
SCHEMATHESIS := 4.32.5
test-fuzz: installed-dev  ## Schemathesis over the OpenAPI document, for FUZZ_SECONDS
	@venv=var/clients/schemathesis; grep -qsx "$(SCHEMATHESIS)" $$venv/installed \
	|| { rm -f $$venv/installed; $(BIN)/python -m venv $$venv \
	&& $$venv/bin/python -m pip install -q --disable-pip-version-check schemathesis==$(SCHEMATHESIS) \
	&& echo "$(SCHEMATHESIS)" > $$venv/installed; }
	FUZZ_SECONDS=$(FUZZ_SECONDS) $(BIN)/python -m pytest -p tests.services -rP --show-capture=stdout tests/fuzz

test-widget: browser  ## The widget in Debian's Chromium; installs it where this is root on a Debian
	$(BIN)/python -m pytest -p tests.services tests/e2e/widget/test_embed_widget.py tests/e2e/widget/test_reach_widget.py

widget-picture: browser  ## docs/widget.png anew
	WIDGET_SCREENSHOT=docs/widget.png $(BIN)/python -m pytest -p tests.services tests/e2e/widget/test_embed_widget.py -k picture

# CLUSTER=short strikes each piece once; CLUSTER_PEOPLE says how many ask at the same time.
CLUSTER ?= whole
test-cluster: installed-dev  ## Two of everything, killed piece by piece under load; installs the engines where this is root on a Debian
	@sh tests/cluster/install.sh
	CLUSTER=$(CLUSTER) $(BIN)/python -m pytest -p tests.services -s tests/cluster

# The page needs no Node to run: only what checks it does, and what brings new versions of its libraries.
web-modules:
	@if command -v npm >/dev/null; then cmp -s web/package-lock.json web/node_modules/.installed.json || { echo "Installing web/package-lock.json"; \
	npm ci --prefix web --silent --no-audit --no-fund && cp web/package-lock.json web/node_modules/.installed.json; }; \
	elif [ -n "$$CI" ]; then echo "npm is missing"; exit 1; \
	else echo "npm is missing: the page's types, style and accessibility stay unchecked."; fi

web-vendor: web-modules  ## Copy the page's libraries from npm into web/vendor
	node web/scripts/vendor.mjs

widget: installed-dev  ## The widget's one file, of its parts in web/
	$(BIN)/python web/scripts/widget.py

web/types/api.d.ts: NO_KEY := AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=
web/types/api.d.ts: installed-dev web-modules
	@mkdir -p var && DATABASE_URL=postgresql:///none AMBER_SECRET_KEYS=$(NO_KEY) AMBER_SECRET_KEY=none \
	$(BIN)/python manage.py spectacular --format openapi-json --file var/openapi.json
	@cd web && npx --no-install openapi-typescript ../var/openapi.json -o types/api.d.ts >/dev/null
.PHONY: web/types/api.d.ts

check-web:  ## The page's types, against the OpenAPI document, and its style
	@if ! command -v npm >/dev/null && [ -z "$$CI" ]; then echo "Node is missing: the page is not checked."; \
	else $(MAKE) --no-print-directory web/types/api.d.ts && cd web && npx --no-install tsc -p . && npx --no-install eslint . && echo "The page: no complaint."; fi

test-web: browser web-modules  ## The page in Debian's Chromium, against real processes and the fake provider
	$(BIN)/python -m pytest -p tests.services tests/e2e/web

web-pictures: browser  ## The page's pictures in docs anew
	WEB_PICTURES=docs $(BIN)/python -m pytest -p tests.services tests/e2e/web/test_take_pictures.py

tour-pictures: browser  ## The pictures of docs/first-assistant.md and of the admin anew
	$(BIN)/python -m tests.house.take_pictures docs

# The headless shell needs half of what the whole browser does; where that is there, it will do.
browser: installed-dev
	@command -v chromium-headless-shell >/dev/null || { apt-get update -qq \
	&& DEBIAN_FRONTEND=noninteractive apt-get install -y -qq chromium-headless-shell >/dev/null; } || command -v chromium >/dev/null
	@$(BIN)/python -m pip install -q --disable-pip-version-check playwright==1.65.2

docs: installed  ## The site of the docs, strictly: a link or an anchor that leads nowhere fails
	@$(BIN)/python -m amber.docs_site.build --check && echo "The docs: no complaint."

# What draws them needs Node and a browser, as GitHub's page has them; the newest that was tried.
MERMAID := 11.17.2
diagrams: browser  ## The pictures of the diagrams in docs, for the site; needs npm
	@npm install --silent --no-audit --no-fund --prefix var/mermaid mermaid@$(MERMAID)
	$(BIN)/python -m tests.house.draw_diagrams var/mermaid/node_modules/mermaid/dist/mermaid.min.js

check: lint types layers migrations docs  ## All that can be known without running it

lint: installed-dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

# mypy's Django plugin reads the settings, which want an address and a key but use neither.
types: NO_KEY := AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=
types: installed-dev
	DATABASE_URL=postgresql:///none AMBER_SECRET_KEYS=$(NO_KEY) $(BIN)/mypy $(CODE) conftest.py manage.py

layers: installed-dev
	$(BIN)/lint-imports
	@$(BIN)/python -m tests.house.structure counts

migrations: installed-dev
	$(BIN)/python -m tests.services manage.py makemigrations --check --dry-run
	@$(BIN)/python -m tests.services -m tests.house.migration_rules

check-image: installed-dev  ## The Dockerfile's steps in a folder, and what comes of them started; needs no engine for containers
	$(BIN)/python -m tests.services -m tests.installation.image_steps

bench: installed-dev  ## The numbers of the design, on this machine
	$(BIN)/python -m bench

bench-scale: installed-dev  ## A large installation against a small one; ARGS="--size medium" for a tenth
	$(BIN)/python -m bench.scale $(ARGS)

bench-quality: installed-dev  ## What is found of what was said and written; ARGS="--locomo FILE" for data of your own
	$(BIN)/python -m tests.services -m bench.quality $(ARGS)

# Pins are made in a fresh environment, so that they hold what is needed and no more.
requirements:  ## Pin requirements*.in into requirements*.txt
	rm -rf .venv-pins && $(PYTHON) -m venv .venv-pins
	.venv-pins/bin/python -m pip install -q -r requirements.in
	.venv-pins/bin/python -m pip freeze --all | grep -v '^pip==' > requirements.txt
	.venv-pins/bin/python -m pip install -q -r requirements-dev.in
	.venv-pins/bin/python -m pip freeze --all | grep -v '^pip==' > requirements-dev.txt
	rm -rf .venv-pins

installed: $(BIN)/python
	@cmp -s requirements.txt .venv/requirements.txt || $(BIN)/python amber/setup/requirements.py requirements.txt

installed-dev: installed
	@cmp -s requirements-dev.txt .venv/requirements-dev.txt || $(BIN)/python amber/setup/requirements.py requirements-dev.txt

$(BIN)/python:
	@test -n "$(PYTHON)" && $(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' \
	|| { echo "Python 3.11 or newer is needed$(if $(PYTHON),: $(PYTHON) is none)."; exit 1; }
	@echo "Making .venv"
	@$(PYTHON) -m venv .venv || { rm -rf .venv; echo "Is the venv module installed (python3-venv)?"; exit 1; }
