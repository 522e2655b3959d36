# The few words of this project. `make` alone explains them.
.DEFAULT_GOAL := help
.PHONY: help setup run test check bench soak kafka clean

help: ## Say what can be said here.
	@awk -F ':.*## ' '/^[a-z]+:.*## / { printf "make %-6s %s\n", $$1, $$2 }' Makefile

setup: ## Build .venv and look for Java. Quick when there is nothing to do.
	@scripts/setup

run: setup ## Show Kohort at work. ARGS are for `kohort demo`.
	@.venv/bin/kohort demo $(ARGS)

test: setup ## Run the tests. ARGS are for pytest.
	@scripts/test $(ARGS)

check: setup ## Check format, lint, types, import contracts and tidiness.
	@scripts/check

bench: setup ## Run every benchmark, Apache Kafka by turns. ARGS such as --quick or --only starts.
	@scripts/bench $(ARGS)

soak: setup ## Kill a node a thousand times, and look what is left. KILLS, and ARGS such as --seed.
	@scripts/soak $(ARGS)

kafka: setup ## Start an Apache Kafka beside us and print its address. Ctrl-C ends it.
	@scripts/kafka $(ARGS)

clean: ## Remove everything that setup and the tools have made.
	@rm -rf .venv .venv.lock .hypothesis .*_cache build dist
	@find src tests -name __pycache__ -prune -exec rm -rf {} +
