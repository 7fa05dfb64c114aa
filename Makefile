# Every target sets up .venv by itself, from pyproject.toml.

PYTHON ?= python3
LENS ?= canon17
BIN := .venv/bin
# What a calibration needs, and what tests and lint need as well.
STAMP := .venv/.installed
DEV_STAMP := .venv/.developing

# PyPI's Blender is for Python 3.11 and needs an older numpy: it has an environment of its own.
PYTHON311 ?= python3.11
BLENDER_BIN := .venv-blender/bin
BLENDER_STAMP := .venv-blender/.installed
BLENDER_TESTS := tests/synth/test_blender.py

# Methods' own packages, which our runners are tried on. What is installed of PyTorch is the build
# for processors; where none is to be had, the other one does, which is gigabytes larger.
METHODS_BIN := .venv-methods/bin
METHODS_STAMP := .venv-methods/.installed
METHODS_LIST := tests/predict/packages.txt
TORCH := torch==2.13.0

# What the tests marked "system" need of Debian, a line for each need.
SYSTEM_PACKAGES += libx11-6 libxrender1 libxfixes3 libxi6 libxkbcommon0 libsm6 libice6 libgl1 # Blender
SYSTEM_PACKAGES += openssh-server openssh-client # the link to the drone
SYSTEM_PACKAGES += systemd # the drone's unit
SYSTEM_PACKAGES += chromium # pages in a browser
SYSTEM_PACKAGES += texlive-latex-base texlive-latex-recommended # tables in LaTeX
SYSTEM_PACKAGES += podman runc debootstrap python3 # the image
SYSTEM_PACKAGES += qemu-user # other processors

# Empty ones are left to the command's own defaults.
DATA ?=
CAMERA ?=
CATALOGUE ?=
OUT ?=
RECIPE ?=
JOBS ?=
PAGES ?=
PICTURES ?=
LONG ?=
FROM ?=
# A real Kalibr calibrates: on the PATH, or in IMAGE if one is named.
REAL_KALIBR = $(if $(filter-out file,$(origin ENGINE)),$(if $(filter kalibr,$(ENGINE)),--engine kalibr $(if $(filter-out file,$(origin IMAGE)),--image "$(IMAGE)")))
COMMON := $(if $(OUT),--out "$(OUT)") $(if $(JOBS),--jobs $(JOBS))

# IN=docker does the work in the image. A client alone is no engine: ask who answers.
IN ?=
IMAGE ?= influx_wrap
ENGINE ?= $(shell for engine in docker podman; do $$engine info >/dev/null 2>&1 && echo $$engine && break; done)
# For builds behind a proxy, from another BASE: --build-arg, --network, --volume.
IMAGE_FLAGS ?=
IMAGE_EXTRAS := video

.DEFAULT_GOAL := install
.PHONY: install help calibrate kalibr calibrate-in-docker image lock engine demo compare test test-system system-packages bench docs docs-site pictures lint clean

install: $(STAMP) ## what a calibration needs, in .venv; the default
	@echo "Installed in .venv. Next, one of:"
	@echo "  make calibrate LENS=canon17                a zoom lens, simulated"
	@echo "  .venv/bin/influx-calib camera PHOTOS       a camera, from photographs of a board"
	@echo "  .venv/bin/influx-calib evaluate --help     scores of predicted intrinsics"
	@echo "  make help                                  all targets"

help: ## this list
	@echo "influx_wrap: make TARGET [LENS=canon17|premista80] [DATA=DIR] [CAMERA=NAME] [CATALOGUE=DIR] [OUT=DIR] [RECIPE=influx|paper|stock|batch] [JOBS=N] [IN=docker | ENGINE=kalibr [IMAGE=NAME]]"
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/  \1\t\2/p' $(MAKEFILE_LIST) | expand -t 16

ifeq ($(IN),)
calibrate: $(STAMP) ## calibrate all cells of LENS; simulated, or those in DATA
	$(BIN)/influx-calib run "$(LENS)" $(COMMON) $(if $(CAMERA),--camera "$(CAMERA)") \
	$(if $(CATALOGUE),--catalogue "$(CATALOGUE)") $(if $(DATA),--data "$(DATA)") $(if $(RECIPE),--recipe $(RECIPE)) $(REAL_KALIBR)
else ifeq ($(IN),docker)
ifneq ($(REAL_KALIBR),)
$(error ENGINE=kalibr has containers of its own: leave IN=docker out, and name the image of the Kalibr with IMAGE)
endif
calibrate: calibrate-in-docker
else
$(error IN=$(IN) is not known; IN=docker works in the image, without it the work is done in .venv)
endif

# The caller's user inside is the caller outside; a rootless podman has to be told so.
HOST_OUT := $(or $(OUT),runs/$(LENS))
calibrate-in-docker: engine
	@[ -z "$(DATA)" ] || [ -d "$(DATA)" ] || { \
	echo "DATA=$(DATA) is not a folder; it is a folder with one folder per cell."; exit 1; }
	@[ -z "$(CATALOGUE)" ] || [ -d "$(CATALOGUE)" ] || { \
	echo "CATALOGUE=$(CATALOGUE) is not a folder; it is a folder of YAML files."; exit 1; }
	@$(ENGINE) image inspect "$(IMAGE)" >/dev/null 2>&1 || $(MAKE) image
	@mkdir -p "$(HOST_OUT)"
	@echo "Inside, $(HOST_OUT) is /out$(if $(DATA), and $(DATA) is /data)."
	$(ENGINE) run --rm --network none --read-only --tmpfs /tmp:mode=1777 \
	--cap-drop all --security-opt no-new-privileges --user "$$(id -u):$$(id -g)" \
	$$([ "$(notdir $(ENGINE))" != podman ] || [ "$$(id -u)" -eq 0 ] || echo --userns keep-id) \
	--volume "$$(realpath "$(HOST_OUT)"):/out" $(if $(DATA),--volume "$$(realpath "$(DATA)"):/data:ro") \
	$(if $(CATALOGUE),--volume "$$(realpath "$(CATALOGUE)"):/catalogue:ro") \
	"$(IMAGE)" influx-calib run "$(LENS)" --out /out $(if $(JOBS),--jobs $(JOBS)) \
	$(if $(CAMERA),--camera "$(CAMERA)") $(if $(CATALOGUE),--catalogue /catalogue) \
	$(if $(DATA),--data /data) $(if $(RECIPE),--recipe $(RECIPE))

image: engine ## the image that IN=docker works in; ENGINE=docker|podman
	$(ENGINE) build --file docker/Dockerfile --tag "$(IMAGE)" $(IMAGE_FLAGS) .

engine:
	@[ -n "$(ENGINE)" ] || { \
	echo "Neither docker nor podman answers: install one of them, or start its service. Without IN=docker the work needs neither."; exit 1; }

lock: $(DEV_STAMP) ## bring docker/requirements.txt up to date with pyproject.toml
	echo "setuptools>=77" | $(BIN)/uv pip compile --quiet --upgrade --generate-hashes --python-version 3.11 \
	--custom-compile-command "make lock" $(IMAGE_EXTRAS:%=--extra %) pyproject.toml - --output-file docker/requirements.txt

demo: $(STAMP) ## from a rendered video of a board to intrinsics, in two minutes
	$(BIN)/influx-calib simulate canon17 --cells z6f5 --video --views 16 --out runs/demo-film
	$(BIN)/influx-calib run canon17 --data runs/demo-film --out runs/demo
	@echo "Pictures: runs/demo/data/z6f5/contact.png, detections.png and coverage.png beside it"

compare: $(STAMP) ## stock, paper, influx and batch side by side; LENS=all for all lenses
	$(BIN)/influx-calib compare "$(LENS)" $(COMMON)

kalibr: $(STAMP) ## our fork of Kalibr in third_party/kalibr/fork, to be built; FROM=REPOSITORY clones another one
	$(BIN)/influx-calib kalibr fork $(if $(FROM),--from "$(FROM)")

test: $(DEV_STAMP) ## the tests that need nothing but Python
	$(BIN)/pytest -n 3 --dist worksteal -m "not system" --durations 15 --durations-min 2

test-system: $(DEV_STAMP) $(BLENDER_STAMP) $(METHODS_STAMP) system-packages ## the tests that need Debian packages, Blender and PyTorch
	$(BLENDER_BIN)/pytest $(BLENDER_TESTS)
	@$(BIN)/pytest -n 3 --dist loadscope --no-loadscope-reorder -m system $(BLENDER_TESTS:%=--ignore=%); code=$$?; \
	if [ $$code -eq 5 ]; then echo "There are no other system tests."; else exit $$code; fi

system-packages:
	@missing=$$(for package in $(SYSTEM_PACKAGES); do \
	dpkg-query --show --showformat '$${db:Status-Status}' $$package 2>/dev/null | grep -qx installed || echo $$package; \
	done | xargs); \
	if [ -z "$$missing" ]; then exit 0; fi; \
	if [ "$$(id -u)" -eq 0 ]; then as_root=; else as_root=sudo; fi; \
	for tool in apt-get $$as_root; do command -v $$tool >/dev/null || { \
	echo "The system tests need $$missing, but there is no $$tool to install them with. Install them, or what your system has in their place, then: make test-system SYSTEM_PACKAGES="; exit 1; }; done; \
	echo "Installing $$missing"; \
	$$as_root apt-get update -qq && \
	$$as_root env DEBIAN_FRONTEND=noninteractive apt-get install -qq --yes --no-install-recommends $$missing

bench: $(DEV_STAMP) ## how fast and how good, against OpenCV
	$(BIN)/python -m benchmarks

docs: $(DEV_STAMP) ## run the commands of README and docs, record what they print; PAGES=lut.md, LONG=no|TEXT
	$(BIN)/python -m tests.docs.record $(if $(LONG),--long="$(LONG)") $(PAGES)

# The site has an environment of its own: mkdocs is not needed for anything else.
DOCS_BIN := .venv-docs/bin
DOCS_STAMP := .venv-docs/.installed
docs-site: $(DOCS_STAMP) ## README and docs as a site in build/site, with all its links checked
	NO_MKDOCS_2_WARNING=1 $(DOCS_BIN)/mkdocs --quiet build --strict
	$(DOCS_BIN)/python docs/check_site.py build/site
	@echo "written: build/site/index.html"

$(DOCS_STAMP): pyproject.toml
	$(PYTHON) -m venv .venv-docs
	$(PYTHON) -c 'import tomllib; print(*tomllib.load(open("pyproject.toml", "rb"))["project"]["optional-dependencies"]["docs"], sep="\n")' > .venv-docs/packages.txt
	$(DOCS_BIN)/python -m pip install --quiet --disable-pip-version-check --requirement .venv-docs/packages.txt
	@touch $@

pictures: $(DEV_STAMP) system-packages ## the pictures of README and docs; PICTURES=report.png makes one
	$(BIN)/python -m docs.pictures $(PICTURES)

lint: $(DEV_STAMP) ## ruff, mypy and which folder may import which
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports --no-cache

clean: ## remove the environments and everything made from the source; runs/ stays
	rm -rf .venv .venv-blender .venv-methods .venv-docs build *.egg-info .pytest_cache .mypy_cache .ruff_cache
	find influx_wrap tests benchmarks docs -type d -name __pycache__ -prune -exec rm -rf {} + 2>/dev/null || true

# What an interrupted installation left is thrown away; one that was whole is brought up to date.
$(STAMP): pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null || { \
	echo "influx_wrap needs Python 3.11 or newer; $(PYTHON) is $$($(PYTHON) -c 'import platform; print("Python", platform.python_version())' 2>/dev/null || echo missing). Name another one: make PYTHON=python3.11"; exit 1; }
	@if command -v $(UV) >/dev/null; then how=uv; no_pip=--without-pip; else how=pip; no_pip=; fi; \
	echo "Installing influx_wrap and what a calibration needs in .venv, with $$how (once)"; \
	[ -e $@ ] && clear= || clear=--clear; \
	$(PYTHON) -m venv $$clear $$no_pip .venv || { \
	echo "$(PYTHON) cannot make an environment. On Debian and Ubuntu: sudo apt install python3-venv"; exit 1; }
	@$(call add,.[video])
	@touch $@

$(DEV_STAMP): $(STAMP)
	@echo "Installing what tests and lint need in .venv (once)"
	@$(call add,.[dev])
	@touch $@

# uv takes seconds where pip takes a minute; it does not read the settings of pip, which is asked next.
UV ?= uv
define add
if command -v $(UV) >/dev/null && $(UV) pip install --quiet --python $(BIN)/python --editable "$(1)"; then exit 0; fi; \
{ $(BIN)/python -m pip --version || $(BIN)/python -m ensurepip; } >/dev/null 2>&1; \
$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable "$(1)" || { \
echo "The installation is not complete, for the reason above. The same command tries again."; exit 1; }
endef

$(BLENDER_STAMP): pyproject.toml
	@$(PYTHON311) -c 'import sys; sys.exit(sys.version_info[:2] != (3, 11))' 2>/dev/null || { \
	echo "Blender's tests need Python 3.11, neither older nor newer; $(PYTHON311) is something else or missing. Try: make test-system PYTHON311=FILE"; exit 1; }
	$(PYTHON311) -m venv .venv-blender
	$(BLENDER_BIN)/python -m pip install --quiet --disable-pip-version-check --editable ".[blender,video]" "pytest>=8"
	@touch $@

$(METHODS_STAMP): $(METHODS_LIST) | $(STAMP)
	$(BIN)/python -m venv .venv-methods
	$(METHODS_BIN)/python -m pip install --quiet --disable-pip-version-check "$(TORCH)+cpu" 2>/dev/null || \
	$(METHODS_BIN)/python -m pip install --quiet --disable-pip-version-check "$(TORCH)"
	$(METHODS_BIN)/python -m pip install --quiet --disable-pip-version-check --requirement $(METHODS_LIST)
	$(METHODS_BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps "depth-anything-3==0.1.1" "torchvision==0.28.0" "evo>=1.31,<2"
	@touch $@
