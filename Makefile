# Short names for what the scripts do. `make` lists them.
.DEFAULT_GOAL := help
.PHONY: help setup build demo demo-sim test test-full gpu-test bench docs format lint clean

help:       ## List these targets
	@sed -n 's/^\([a-z-]*\): .*## \(.*\)/  make \1\t\2/p' Makefile | expand -t 18

setup:      ## Install what is missing: Debian packages, Python packages into .venv
	@scripts/setup.sh

build: setup ## Build everything into build/release
	@scripts/build.sh release

demo: setup ## Train a small network on the CPU in half its memory, beside PyTorch alone
	@scripts/build.sh release --target coop-plugin
	@scripts/demo.sh $(ARGS)

demo-sim:   ## What smaller budgets cost ResNet-50 and BERT-Large: tables, and pictures in build/demo
	@scripts/setup.sh demo
	@scripts/build.sh release --target coop-sim
	@scripts/demo_sim.sh $(ARGS)

test: setup ## Every check; STAGES="release lint" runs only these, TORCH=2.13.0 with that PyTorch, not 2.15.0
	@scripts/test.sh $(STAGES)

test-full: setup ## The same at full size, with a dated report in bench/results/
	@scripts/test.sh --full $(STAGES)

gpu-test:   ## The tests that need a GPU, with a report in bench/results/; the plugin must be built
	@scripts/gpu_test.sh $(ARGS)

bench: setup ## Micro-benchmarks and their table; ARGS="--json FILE" writes it beside
	@scripts/bench.sh $(ARGS)

docs: setup ## Run the commands that the documents show, and write down what they print
	@scripts/build.sh release --target coop-sim coop-plugin
	@scripts/refresh_docs.py

format: setup ## Rewrite the sources in the project's format
	@scripts/format.sh

lint: setup ## Format check and clang-tidy only
	@scripts/test.sh format lint

clean:      ## Remove the builds (the .venv stays)
	rm -rf build
