# The commands of this project. `make` alone lists them.
.DEFAULT_GOAL := help
.PHONY: help setup run quick test test-full check bench soak kafka clean

help: ## List the commands.
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "make %-10s %s\n", $$1, $$2 }' Makefile

setup: ## Create .venv and look for Java. Does nothing if everything is up to date.
	@scripts/setup

run: setup ## Start the demo. ARGS are passed to `kohort demo`.
	@.venv/bin/kohort demo $(ARGS)

quick: setup ## Run the tests that need no sockets, no Java and no browser (under a minute).
	@scripts/test --quick

test: setup ## Run the tests (under 10 minutes). ARGS are passed to pytest.
	@scripts/test $(ARGS)

test-full: setup ## Run the long tests that `make test` leaves out.
	@scripts/test --full

check: setup ## Check format, lint, types, import contracts and repository rules.
	@scripts/check

bench: setup ## Run the benchmarks against Apache Kafka. ARGS such as --quick or --only starts.
	@scripts/bench $(ARGS)

soak: setup ## Run 20,000 simulation seeds and 1,000 broker kills. SEEDS, KILLS, ARGS (--seed).
	@scripts/soak $(ARGS)

kafka: setup ## Start an Apache Kafka broker and print its address. Ctrl-C stops it.
	@scripts/kafka $(ARGS)

clean: ## Delete everything that setup and the tools have created.
	@rm -rf .venv .venv.lock .hypothesis .*_cache build dist
	@find src tests -name __pycache__ -prune -exec rm -rf {} +
