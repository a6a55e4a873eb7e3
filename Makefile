# arrayd: `make help` lists what can be made. Everything made lies under build/<variant>.

VERSION := 0.1.0
VARIANT ?= release
# TARGET: another machine to compile the client for, in build/<target>, as zig names it: aarch64-linux-gnu.2.28.
TARGET ?=
ifneq ($(TARGET),)
override VARIANT := $(TARGET)
endif
PREFIX ?= /usr/local
LIBDIR ?= $(PREFIX)/lib
UNITDIR ?= $(PREFIX)/lib/systemd/system
SYSCONFDIR ?= /etc
DESTDIR ?=
FUZZ_SECONDS ?= 60

# All processors, unless the caller says how many.
ifeq ($(MAKELEVEL),0)
ifeq ($(findstring -j,$(shell ps -o args= -p $$PPID 2>/dev/null)),)
MAKEFLAGS += -j$(shell nproc)
endif
endif
MAKEFLAGS += --no-builtin-rules
.SUFFIXES:
.SECONDARY:
.DELETE_ON_ERROR:
.DEFAULT_GOAL := all

B := build/$(VARIANT)
OBJ := $B/obj
BIN := $B/bin
LIB := $B/lib
TESTS := $B/tests
PACKAGE := $B/python/arrayd
DOCS := build/docs
VENV := build/venv
VPYTHON := $(VENV)/bin/python
DEMO_VENV := build/demo-venv
FETCHED := build/fetched
FETCHED_FLAGS := -isystem $(FETCHED)/include
# The first Python that is new enough. Looked for when it is needed: `deps` may just have installed it.
FIND_PYTHON := for p in python3 python3.11 python3.12 python3.13 python3.14; do \
	$$p -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && { echo $$p; break; }; done
PYTHON = $(call once,FIND_PYTHON)

# What a variable's command prints. The command is run when it is first needed, and not again once it has printed something.
once = $(or $($1.result),$(eval $1.result := $(shell $($1)))$($1.result))
# FORCE where the file $1 does not say $2: what depends on it was made otherwise. The file's recipe is to write $2.
if_changed = $(if $(findstring |$(strip $2)|,|$(strip $(file <$1))|),,FORCE)
write = mkdir -p $(@D) && printf '%s\n' '$(subst ','\'',$(strip $(1)))' >$@

# `make test` and `make demo` build what this machine can run: kernels for its processor, and CUDA only where there is a GPU.
# `make all`, `make test-rest` and everything else build it all.
QUICK := $(if $(filter-out test demo,$(or $(MAKECMDGOALS),all)),,yes)
CUDA_HERE = $(subst .,,$(shell nvidia-smi --query-gpu=compute_cap --format=csv,noheader 2>/dev/null | grep -x '[0-9.]*'))
ifeq ($(origin NVCC),undefined)
NVCC := $(firstword $(wildcard $(shell command -v nvcc) /usr/local/cuda/bin/nvcc))
ifneq ($(and $(QUICK),$(NVCC)),)
ifeq ($(CUDA_ARCHS)$(CUDA_HERE),)
NO_GPU := yes
NVCC :=
endif
endif
endif

# Compilers for other machines are zig's, one of Python's packages, which has their C libraries' headers.
ifneq ($(TARGET),)
CC := $(VPYTHON) -m ziglang cc -target $(TARGET)
AR := $(VPYTHON) -m ziglang ar
endif
MACOS := $(findstring macos,$(TARGET))

# What is built is named in one short line; V=1 shows the commands.
Q := $(if $(V),,@)
say = $(if $(V),,@echo "  $(1)" $(@:build/%=%))

# ---- flags ----

comma := ,
SANITIZE_release :=
SANITIZE_asan := -fsanitize=address -fno-omit-frame-pointer
SANITIZE_ubsan := -fsanitize=undefined -fno-sanitize-recover=undefined
SANITIZE_tsan := -fsanitize=thread
# Counts of branches (make coverage), of a build that keeps each of the source's.
SANITIZE_coverage := --coverage -fprofile-update=atomic -O0
SANITIZE_fuzz := -fsanitize=fuzzer-no-link,address,undefined -fno-sanitize-recover=undefined
ifeq ($(VARIANT),fuzz)
CC := clang
endif
SANITIZE := $(SANITIZE_$(VARIANT))
HARDEN := -fstack-protector-strong $(if $(SANITIZE),,-D_FORTIFY_SOURCE=2)
WARN := -Wall -Wextra -Werror -Wshadow
COMMON := -O2 -g -fPIC -pthread -D_GNU_SOURCE -I. -Iclient-c/include $(HARDEN) $(SANITIZE) \
	$(if $(SANITIZE),-DAD_DEBUG)
# Headers of OpenSSL, msgpack and Python, which are the same for all machines; what Linux alone has is not on macOS.
ifneq ($(TARGET),)
COMMON += -isystem $(OBJ)/headers $(if $(MACOS),-Iclient-c/macos -include client-c/macos/linux.h)
endif
VERSION_FLAGS := -DAD_VERSION='"$(VERSION)"'
# gcc clears structures by `rep stos`, which takes 30 cycles to begin; where it knows the option, by a loop of vectors.
CLEARING := -mmemset-strategy=vector_loop:1024:noalign,libcall:-1:noalign
CLEARING := $(shell $(CC) $(CLEARING) -E -x c /dev/null >/dev/null 2>&1 && echo $(CLEARING))
C_FLAGS = -std=c11 $(COMMON) $(CLEARING) $(VERSION_FLAGS) $(WARN) -Wmissing-prototypes $(CFLAGS)
CXX_FLAGS = -std=c++17 $(COMMON) $(WARN) $(CXXFLAGS)
LINK_FLAGS = -pthread $(SANITIZE) $(if $(MACOS),,-Wl$(comma)-z$(comma)relro$(comma)-z$(comma)now) $(LDFLAGS)
DEPEND = -MMD -MP -MF $(@:.o=.d)

# Linked statically, so that the programs, the library and the wheel run where none of this is installed.
UV_LIBS ?= -l:libuv_a.a -lpthread -ldl -lrt
MSGPACK_LIBS ?= -l:libmsgpackc.a $(if $(filter coverage,$(VARIANT)),-lm)
INI_LIBS ?= -l:libinih.a
# Of libmicrohttpd what needs TLS is never called: its names mean a function of ours (server/front/observe/no_tls.h).
HTTP_ARCHIVE = $(firstword $(wildcard $(shell $(CC) -print-file-name=libmicrohttpd.a)))
HTTP_LIBS ?= -l:libmicrohttpd.a $(patsubst %,-Wl$(comma)--defsym$(comma)%=ad__http_no_tls,\
	$(sort $(shell nm -u $(HTTP_ARCHIVE) 2>/dev/null | grep -o 'gnutls_[a-z0-9_]*')))
JSON_LIBS ?= -l:libjansson.a
BLAS_LIBS ?= -l:liblapacke.a -l:libopenblas.a
FIND_BLAS := pkg-config --cflags openblas 2>/dev/null
BLAS_FLAGS = $(call once,FIND_BLAS)
FIND_PYTHON_HEADERS = $(PYTHON) -c 'import sysconfig; print(sysconfig.get_path("include"))'
PYTHON_FLAGS = $(if $(TARGET),,-isystem $(call once,FIND_PYTHON_HEADERS)) \
	-DPy_LIMITED_API=0x030B0000 \
	-Wno-missing-field-initializers -Wno-cast-function-type -Wno-missing-prototypes

# ---- sources ----

objects = $(patsubst %,$(OBJ)/%.o,$(basename $(wildcard $(1))))
# All files of those kinds below a folder: its rooms are found by themselves.
below = $(sort $(foreach kind,$(2),$(shell find $(1) -name '*.$(kind)')))
objects_below = $(patsubst %,$(OBJ)/%.o,$(basename $(call below,$(1),$(2))))
PROTOCOL := $(call objects,protocol/*.c)
TLS := $(call objects,protocol/tls/*.c)
DIGEST := $(OBJ)/protocol/tls/digest.o
COMMON_SERVER := $(call objects,server/common/*.c) $(DIGEST)
FRONT := $(call objects_below,server/front,c) $(TLS)
WORKER := $(call objects_below,server/worker,c)
COMPILE_SERVICE := $(call objects,server/worker/modules/compile/*.c)
CTL := $(call objects,server/ctl/*.c)
# What arrayctl needs of the front, to look at a configuration.
CTL_SHARED := $(patsubst %,$(OBJ)/server/front/%.o,net/address check auth/grants auth/principals peers/peers) $(TLS)
COMPILE := $(filter-out %/preload.o,$(call objects,server/compile/*.c))
# What the worker needs of it, to write jobs and to read what came of them.
COMPILE_SHARED := $(patsubst %,$(OBJ)/server/compile/%.o,frame options scratch toolkit)
CLIENT := $(filter-out $(OBJ)/client-c/examples/% $(OBJ)/client-c/pull/%,$(call objects_below,client-c,c)) $(TLS)
EXTENSION := $(call objects,client-python/src/*.c)
KERNELS := $(call objects,kernels/*.cpp) $(filter-out $(OBJ)/kernels/cpu/isa/%,$(call objects_below,kernels/cpu,cpp))
WIRE := $(call objects,tests/wire/*.c)
FUZZERS := $(patsubst tests/fuzz/%.c,%,$(wildcard tests/fuzz/*.c))
PY_SOURCES := $(shell find client-python/arrayd -name '*.py' -o -name '*.pyi' -o -name py.typed)
CUDA_SOURCES := $(call below,kernels/cuda,cu cpp) $(wildcard kernels/*.cpp)
UNIT := $(sort $(foreach f,$(notdir $(wildcard tests/unit/*.c tests/unit/*.cpp)),$(firstword $(subst _, ,$f))))
# Branches of kernels are not counted.
ifeq ($(VARIANT),coverage)
UNIT := $(filter-out kernels,$(UNIT))
endif
# What takes compilers at run time, for tests/build.
CHECKS := $(if $(filter release,$(VARIANT)),$B/checks/fuse)

# KERNEL_ISAS: the instruction sets to compile kernels for. `native` is the best that this machine runs; `make test` and
# `make demo` take it where nothing was built before.
ISAS_ALL := $(if $(filter x86_64,$(shell uname -m)),$(if $(filter release,$(VARIANT)),v2 v3 v4,v3),plain)
ISAS_HERE := plain $(shell /lib64/ld-linux-x86-64.so.2 --help 2>/dev/null | sed -n 's/^ *x86-64-\(v[234]\) .supported.*/\1/p')
KERNEL_ISAS ?= $(if $(QUICK),$(or $(strip $(file <$(OBJ)/isas)),native),$(ISAS_ALL))
override KERNEL_ISAS := $(subst native,$(or $(lastword $(filter $(ISAS_HERE),$(ISAS_ALL))),$(ISAS_ALL)),$(KERNEL_ISAS))
ISAS_MISSING := $(filter-out $(KERNEL_ISAS),$(ISAS_ALL))
-include kernels/flags.mk

A_PROTOCOL := $(LIB)/libarrayd-protocol.a
A_SERVER := $(LIB)/libarrayd-server.a
A_KERNELS := $(LIB)/libarrayd-kernels.a
A_CLIENT := $(LIB)/libarrayd.a
SO_CLIENT := $(LIB)/libarrayd.so.0
CORE := $(PACKAGE)/_core.abi3.so
PROGRAMS := $(BIN)/arrayd $(BIN)/arrayd-worker $(BIN)/arrayd-compile $(BIN)/arrayd-pull $(BIN)/arrayctl $(BIN)/libarrayd-cpu.so \
	$(BIN)/arrayd-paths.so
ifeq ($(VARIANT),release)
ifneq ($(NVCC),)
PROGRAMS += $(BIN)/libarrayd-cuda.so
else
$(info $(if $(NO_GPU),no GPU here,no nvcc): libarrayd-cuda.so is left out)
endif
endif
PACKAGED := $(patsubst $(BIN)/%,$(PACKAGE)/bin/%,$(PROGRAMS))

# ---- what people ask for ----

.PHONY: all slowest programs libraries extension python wheel tests cuda
all: programs libraries python ## build the programs, the libraries and the Python package (build/release)
# What takes longest to compile, to begin with: all processors have something to do to the end.
slowest: $(foreach f,ufunc_float ufunc_complex reduce_float reduce_integer,$(filter %/$f.o $(addprefix %/$f.,$(KERNEL_ISAS:=.o)),$(ISA_OBJECTS))) \
	$(KERNELS)
	@:
programs: $(PROGRAMS)
libraries: $(A_CLIENT) $(LIB)/libarrayd.so
cuda: $(BIN)/libarrayd-cuda.so
extension: $(CORE)
python: $(PACKAGE)/.stamp
tests: $(UNIT:%=$(TESTS)/%) $(if $(PROTOCOL),$(BIN)/libarrayd-protocol-test.so) $(CHECKS)
	@:

.PHONY: demo test test-rest test-all test-gpu conformance bench soak sim sim-sweep bundle asan ubsan tsan coverage fuzz differential lint fmt docs install sdist deb release \
	clean help deps
# Makes goals of this file, showing how far it is.
build = $(PYTHON) deploy/progress.py $(1) $(MAKEOVERRIDES) KERNEL_ISAS='$(KERNEL_ISAS)' NVCC='$(NVCC)'

demo: | build/.deps ## a web service of four workers over one index, and a photograph: tables beside NumPy, PNGs in build/demo
	@$(call build,$(DEMO_VENV)/.stamp slowest all)
	@$(DEMO_VENV)/bin/python docs/demo/demo.py --build $B --out build/demo

# Of what takes long make test runs one part of SAMPLE. SEED says which, otherwise the commit (tests/sampling.py).
SAMPLE := 8
RUN_SAMPLE = $(VPYTHON) tests/run.py --build $B --sample $(SAMPLE) $(if $(SEED),--seed=$(SEED))
test: | build/.deps ## run the tests, of those that take long a sample; the last line counts passed and failed
	@$(call build,$(VENV)/.test slowest all tests)
	@$(RUN_SAMPLE)

test-rest: | build/.deps build/.deps-rest ## build everything, and run what `make test` leaves out of the same commit
	@$(call build,$(VENV)/.stamp slowest all tests simulator)
	@$(RUN_SAMPLE) --rest

test-all: SEEDS = 10000
test-all: | build/.deps build/.deps-rest ## run every test, CuPy's own among them, and 10,000 seeds of the simulator
	@$(call build,$(VENV)/.stamp slowest all tests simulator)
	@$(VPYTHON) tests/run.py --build $B
	@$(SIM)/sim $B --seeds $(SEEDS) --from $(FROM)
	@$(VPYTHON) tests/conformance/run.py --build $B --check

test-gpu: all tests $(VENV)/.stamp ## run the ops suite and tests/gpu on a GPU, where there is one
	@if nvidia-smi -L >/dev/null 2>&1; then $(VPYTHON) tests/run.py --build $B gpu; \
	else echo "test-gpu: no NVIDIA GPU here, nothing to run"; fi

conformance: all $(VENV)/.stamp ## run CuPy's own tests, fetched from the package registry; rewrites docs/conformance.md
	@nice -n 5 $(VPYTHON) tests/conformance/run.py --build $B

bench: all $(VENV)/.stamp ## measure; rewrites the tables of docs/performance.md, the GPU's where there is one
	@$(VPYTHON) tests/bench/bench.py --build $B --markdown docs/performance.md
	@$(VPYTHON) tests/bench/service.py --build $B --markdown docs/performance.md
	@$(VPYTHON) tests/bench/fft.py --build $B --markdown docs/performance.md
	@$(VPYTHON) tests/bench/functions.py --build $B --markdown docs/performance.md
	@$(VPYTHON) tests/bench/widely.py --build $B --markdown docs/performance.md
	@$(VPYTHON) tests/bench/solvers.py --build $B --markdown docs/performance.md
	@if nvidia-smi -L >/dev/null 2>&1; then \
	$(VPYTHON) tests/bench/gpu.py --build $B --markdown docs/performance.md --plot build/bench.png; fi
	@$(VPYTHON) docs/pictures.py

soak: all $(VENV)/.stamp ## many clients, some killed, some cut off, for SOAK_SECONDS (600): nothing wrong or left; SOAK_TROUBLE=5: workers killed, too
	@$(VPYTHON) tests/soak/soak.py --build $B

SEEDS ?= 1000
FROM ?= 0
sim: simulator ## run SEEDS (1000) of the deterministic simulator from FROM (0) on; a failing seed prints the command that repeats it
	@$(SIM)/sim $B --seeds $(SEEDS) --from $(FROM)
sim-sweep: simulator ## kill a simulated worker at every store into its journal, for a script of sessions (about an hour of processor time)
	@for late in 0 1; do $(SIM)/sim $B --sweep --twice --seed 1 --set late=$$late || exit 1; done

asan ubsan tsan: $(VENV)/.stamp ## build that variant and run the tests of the C programs under the sanitizer
	@$(MAKE) --no-print-directory VARIANT=$@ all tests
	@$(MAKE) --no-print-directory VARIANT=release python
	@$(VPYTHON) tests/run.py --build build/$@ unit native wire fault

coverage: $(VENV)/.stamp ## count which branches that strangers reach no test takes; rewrites the table of docs/internals/testing.md
	@$(MAKE) --no-print-directory VARIANT=release all simulator
	@$(MAKE) --no-print-directory VARIANT=coverage all tests simulator
	@$(VPYTHON) tests/coverage.py --build build/coverage

fuzz: $(VENV)/.test ## fuzz what reads untrusted bytes, FUZZ_SECONDS (60) for each target; needs clang
	@$(MAKE) --no-print-directory VARIANT=fuzz fuzzers
	@$(VPYTHON) tests/fuzz/corpus.py build/fuzz/corpus
	@set -e; for t in $(FUZZERS); do mkdir -p build/fuzz/corpus/$$t; echo "== $$t"; \
	build/fuzz/bin/$$t -max_total_time=$(FUZZ_SECONDS) -timeout=10 -rss_limit_mb=2048 -print_final_stats=1 \
		-artifact_prefix=build/fuzz/$$t- build/fuzz/corpus/$$t >build/fuzz/$$t.log 2>&1 || \
		{ tail -n 60 build/fuzz/$$t.log; exit 1; }; \
	tail -n 6 build/fuzz/$$t.log; done

differential: all $(VENV)/.test ## the same drawn operations on three servers, FUZZ_SECONDS (60): one by one, completed later, with killed workers
	@ARRAYD_BUILD=$B $(VPYTHON) tests/fuzz/differential.py --seed $(FROM) --seconds $(FUZZ_SECONDS)

lint: ## check the dependency arrows, formatting, Python; ruff and cppcheck where installed
	@$(PYTHON) tests/lint.py --all

fmt: ## format the C, C++ and CUDA sources
	clang-format -i $(call below,protocol server client-c client-python/src kernels tests,c h cpp hpp cu cuh)

docs: python $(VENV)/.stamp ## the site (build/docs/site), reference and man pages, from the tables and the docstrings; and docs/coverage.md
	@PYTHONPATH=$B/python $(VPYTHON) docs/generate.py $(DOCS) $(VERSION) --python
	@$(VPYTHON) docs/pictures.py
	@$(VPYTHON) docs/site.py $(DOCS)/site $(DOCS)

WHEELS := client server $(if $(NVCC),cuda13)
wheel: all $(VENV)/.stamp ## the Python wheels of the client (for aarch64, too), the server and, with nvcc, the CUDA backend: build/release/dist
	@$(VPYTHON) deploy/wheels/build.py $B/dist $(WHEELS) client-aarch64
sdist: $(VENV)/.stamp ## the source distribution, in build/release/dist
	@$(VPYTHON) deploy/wheels/build.py $B/dist sdist

deb: wheel $(DOCS)/arrayd.8 ## Debian packages of the server, the clients and, with nvcc, the CUDA backend: build/release/dist
	@$(VPYTHON) deploy/debian/build.py $B/dist $(VERSION) $(if $(NVCC),cuda)

RELEASE := build/arrayd-$(VERSION)
release: wheel sdist deb ## wheels, source distribution, Debian packages, bill of materials, checksums: build/arrayd-<version>
	@$(VPYTHON) deploy/sbom.py build/sbom.cdx.json $B/dist
	@$(VPYTHON) deploy/release.py $(RELEASE) $B/dist build/sbom.cdx.json

clean: ## remove everything that was built
	rm -rf $(filter-out $(VENV) $(DEMO_VENV) $(FETCHED),$(wildcard build/*)) build/.deps build/.deps-rest

deps: build/.deps $(FETCHED)/.stamp ## install the Debian packages that are missing; fetch headers of others

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z -]+:.*## / { printf "  %-16s %s\n", $$1, $$2 }' $(firstword $(MAKEFILE_LIST))
	@echo '  VARIANT=asan, ubsan or tsan, V=1 and -jN go with all of them.'
	@echo '  SEED=...: another sample for test and test-rest than that of the commit.'
	@echo '  CUDA_ARCHS="80 90": the GPUs to compile for; without it those that are here (90 if none), for bundle all.'
	@echo '  TARGET=aarch64-linux-gnu.2.28, aarch64-macos.11.0: the client for another machine, with the goal extension.'
	@echo '  NVCC= leaves CUDA out. KERNEL_ISAS=native leaves out CPU kernels that this machine does not run.'

# ---- what the machine must have ----

build/.deps: deploy/packages.sh
	@mkdir -p build
	@deploy/packages.sh $(if $(filter demo test test-rest test-all deps,$(MAKECMDGOALS)),install,check)
	@touch $@

build/.deps-rest: deploy/packages.sh | build/.deps
	@deploy/packages.sh rest
	@touch $@

# Headers of others, from the package registry; what includes them has the stamp as an order-only prerequisite or is made
# again with it.
$(FETCHED)/.stamp: deploy/fetch.py | build/.deps
	$(call say,GET)
	@$(PYTHON) deploy/fetch.py $(FETCHED)
	@touch $@

# What `make test` needs is half of what all tests and documents do.
$(VENV)/.stamp: tests/requirements-rest.txt
$(VENV)/.stamp $(VENV)/.test: tests/requirements.txt | build/.deps
	$(call say,PIP)
	@test -x $(VPYTHON) || $(PYTHON) -m venv $(VENV)
	$Q$(VPYTHON) -m pip install --quiet --disable-pip-version-check -r tests/requirements$(if $(filter %.stamp,$@),-rest).txt
	@touch $@

# What the demo needs is little; the tests' environment is ten times as large.
$(DEMO_VENV)/.stamp: docs/demo/requirements.txt | build/.deps
	$(call say,PIP)
	@test -x $(@D)/bin/python || $(PYTHON) -m venv $(@D)
	$Q$(@D)/bin/python -m pip install --quiet --disable-pip-version-check -r docs/demo/requirements.txt
	@touch $@

# ---- compiling ----

# Criterion itself does not start under the thread sanitizer; tests/unit/plain stands in for it.
ifeq ($(VARIANT),tsan)
COMMON += -Itests/unit/plain
endif

# Objects are made again when the flags change.
ALL_FLAGS := $(CC) $(C_FLAGS) $(CXX) $(CXX_FLAGS)
$(OBJ)/flags: $(call if_changed,$(OBJ)/flags,$(ALL_FLAGS))
	@$(call write,$(ALL_FLAGS))
.PHONY: FORCE # without which .SECONDARY would hide that it is not there
FORCE:

# Of this machine, for others.
$(OBJ)/headers: deploy/headers.py
	@$(PYTHON) deploy/headers.py $@

$(OBJ)/%.o: %.c $(OBJ)/flags | build/.deps $(if $(TARGET),$(OBJ)/headers $(VENV)/.stamp)
	@mkdir -p $(@D)
	$(call say,CC )
	$Q$(CC) $(C_FLAGS) $(EXTRA) $(DEPEND) -c $< -o $@

$(OBJ)/%.o: %.cpp $(OBJ)/flags | build/.deps
	@mkdir -p $(@D)
	$(call say,CXX)
	$Q$(CXX) $(CXX_FLAGS) $(EXTRA) $(DEPEND) -c $< -o $@

$(OBJ)/client-python/%.o: EXTRA = $(PYTHON_FLAGS) $(FETCHED_FLAGS)
$(OBJ)/client-c/interop/dlpack.o $(OBJ)/tests/unit/embedded_dlpack.o: EXTRA = $(FETCHED_FLAGS)
$(OBJ)/client-c/interop/dlpack.o $(OBJ)/tests/unit/embedded_dlpack.o \
$(patsubst %,$(OBJ)/client-python/src/%.o,exchange export lend): | $(FETCHED)/.stamp
# Of templates all debug information takes a third of the compiler's time.
$(OBJ)/kernels/%.o: EXTRA = $(KERNEL_CXXFLAGS) -g1 $(BLAS_FLAGS)
$(OBJ)/tests/unit/kernels_%.o: EXTRA = $(KERNEL_CXXFLAGS) -O1 -g1 $(BLAS_FLAGS)

$(OBJ)/isas: $(call if_changed,$(OBJ)/isas,$(KERNEL_ISAS))
	@$(call write,$(KERNEL_ISAS))
$(OBJ)/kernels/cpu/kernels.o: $(OBJ)/isas

# ---- archives, libraries, programs ----

# Several files of an archive may have one name: q keeps them all.
archive = rm -f $@ && mkdir -p $(@D) && $(AR) qcs $@ $(filter %.o,$^)
shared = $(if $V,,@echo '  LD ' $(@:build/%=%) &&) mkdir -p $(@D) && $(CC) -shared $(LINK_FLAGS) -Wl,--no-undefined -o $@
# The linker writes down which archives it takes something from; deploy/parts.py reads their licences.
MAP = -Wl,-Map=$(OBJ)/maps/$(@F).map
$(PROGRAMS) $(SO_CLIENT) $(CORE): | $(OBJ)/maps
$(OBJ)/maps:
	@mkdir -p $@

$(A_PROTOCOL): $(PROTOCOL)
	@$(archive)
$(A_SERVER): $(filter-out %/main.o,$(COMMON_SERVER) $(FRONT) $(WORKER)) $(COMPILE_SHARED)
	@$(archive)
$(A_KERNELS): $(KERNELS) $(OBJ)/isas
	@$(archive)
$(A_CLIENT): $(CLIENT) $(PROTOCOL)
	@$(archive)

$(BIN)/arrayd: $(FRONT) $(COMMON_SERVER) $(A_PROTOCOL)
	@mkdir -p $(@D)
	$(call say,LD )
	$Q$(CC) -pie $(LINK_FLAGS) $(addprefix -Wl$(comma)--wrap=,$(WRAPS_ALL)) $(MAP) -o $@ $^ $(MSGPACK_LIBS) $(INI_LIBS) \
		$(HTTP_LIBS) $(UV_LIBS)

# The assembler reads these (server/front/observe/http_pages.c), so make has to know.
$(OBJ)/server/front/http_pages.o: $(wildcard server/front/observe/page/*)

# The address sanitizer looks for what throws exceptions when a program begins, which is before backends are loaded.
CXX_RUNTIME := -Wl,--no-as-needed -lstdc++
$(BIN)/arrayd-worker: $(WORKER) $(COMPILE_SHARED) $(COMMON_SERVER) $(A_PROTOCOL)
	@mkdir -p $(@D)
	$(call say,LD )
	$Q$(CC) -pie $(LINK_FLAGS) $(MAP) -o $@ $^ $(MSGPACK_LIBS) $(INI_LIBS) $(UV_LIBS) $(if $(SANITIZE),$(CXX_RUNTIME))

# The compiler of the host loads it, which is built without a sanitizer.
$(BIN)/arrayd-paths.so: $(addprefix server/compile/,paths.c preload.c run.h) $(OBJ)/flags \
	$(if $(wildcard $(OBJ)/maps/arrayd-paths.so.map),,FORCE)
	@mkdir -p $(@D)
	$(call say,LD )
	$Q$(CC) -shared $(filter-out $(SANITIZE),$(C_FLAGS) $(LINK_FLAGS)) $(MAP) -o $@ $(filter %.c,$^) -ldl

$(BIN)/arrayctl: $(CTL) $(CTL_SHARED) $(COMPILE_SERVICE) $(COMPILE_SHARED) $(COMMON_SERVER) $(A_PROTOCOL)
	@mkdir -p $(@D)
	$(call say,LD )
	$Q$(CC) -pie $(LINK_FLAGS) $(MAP) -o $@ $^ $(MSGPACK_LIBS) $(INI_LIBS) $(JSON_LIBS) -lpthread -ldl

# A client of two servers, which arrayd starts.
$(BIN)/arrayd-pull: $(OBJ)/client-c/pull/pull.o $(A_CLIENT)
	@mkdir -p $(@D)
	$(call say,LD )
	$Q$(CC) -pie $(LINK_FLAGS) $(MAP) -o $@ $^ $(MSGPACK_LIBS) -lpthread -ldl -lm

# What has kernels for this machine alone says so in its name, so that it is not packed.
CPU_NAME := libarrayd-cpu$(if $(ISAS_MISSING),-native).so
# A jail has no place to write counts of branches to, and kernels have too many.
ifeq ($(VARIANT),coverage)
$(BIN)/libarrayd-cpu.so $(BIN)/arrayd-compile: $(BIN)/%: build/release/bin/%
	@mkdir -p $(@D) && cp $< $@
else
# Its own open, stat and so on stand before the C library's: see server/compile/paths.c.
$(BIN)/arrayd-compile: $(COMPILE) $(patsubst %,$(OBJ)/server/common/%.o,os filter) $(A_PROTOCOL)
	@mkdir -p $(@D)
	$(call say,LD )
	$Q$(CC) -pie -rdynamic $(LINK_FLAGS) $(MAP) -o $@ $^ -ldl

$(BIN)/libarrayd-cpu.so: $(KERNELS) $(A_PROTOCOL) $(OBJ)/backend.map $(OBJ)/isas
	@mkdir -p $(@D)
	$(call say,LD )
	$Q$(CXX) -shared $(LINK_FLAGS) $(MAP) -Wl,-soname,$(CPU_NAME) -Wl,--version-script=$(OBJ)/backend.map -o $@ $(KERNELS) $(A_PROTOCOL) \
		$(MSGPACK_LIBS) $(BLAS_LIBS) $(KERNEL_LIBS)
endif

# What is not optimised (kernels/flags.mk) says so in its name, which is in the file, so that it is not packed.
CUDA_NAME := libarrayd-cuda$(if $(CUDA_QUICK),-unoptimised).so
$(BIN)/libarrayd-cuda.so: $(CUDA_OBJECTS) $(CUDA_PROTOCOL) $(OBJ)/backend.map $(OBJ)/cuda-archs
	@mkdir -p $(@D)
	$(call say,LD )
	$Q$(CXX) -shared $(LINK_FLAGS) $(MAP) -Wl,-soname,$(CUDA_NAME) -Wl,--version-script=$(OBJ)/backend.map -Wl,--no-undefined \
		-o $@ $(CUDA_OBJECTS) \
		$(CUDA_PROTOCOL) $(CUDA_LIBS)

$(OBJ)/backend.map:
	@mkdir -p $(@D)
	@echo '{ global: ad_backend_get; ad_part_table_get; local: *; };' >$@

ifneq ($(TARGET),)
# zig's linkers know fewer options, and nothing of msgpack's archive is needed.
link_elsewhere = mkdir -p $(@D) && $(CC) -shared -s $(LINK_FLAGS) -o $@ $(filter %.o,$^)
$(SO_CLIENT): $(CLIENT) $(PROTOCOL) client-c/arrayd.map
	$(call say,LD )
	$Q$(link_elsewhere) $(if $(MACOS),,-Wl,-soname,libarrayd.so.0 -Wl,--version-script=client-c/arrayd.map)

$(CORE): $(EXTENSION) $(CLIENT) $(PROTOCOL)
	$(call say,LD )
	$Q$(link_elsewhere) $(if $(MACOS),-undefined dynamic_lookup)
else
$(SO_CLIENT): $(CLIENT) $(PROTOCOL) client-c/arrayd.map
	$(shared) $(MAP) -Wl,-soname,libarrayd.so.0 -Wl,--version-script=client-c/arrayd.map $(CLIENT) $(PROTOCOL) $(MSGPACK_LIBS)

$(LIB)/libarrayd.so: $(SO_CLIENT)
	@ln -sf libarrayd.so.0 $@

$(CORE): $(EXTENSION) $(A_CLIENT)
	$(shared) $(MAP) -Wl,--exclude-libs,ALL $^ $(MSGPACK_LIBS) -Wl,--unresolved-symbols=ignore-all
endif

# The package has the programs that this build makes, and none that one with nvcc has left: it is packed as it is.
$(OBJ)/packaged: $(call if_changed,$(OBJ)/packaged,$(PACKAGED))
	@$(call write,$(PACKAGED))

$(PACKAGE)/.stamp: $(CORE) $(PACKAGED) $(PY_SOURCES) $(OBJ)/packaged
	@cp -rsf '$(CURDIR)/client-python/arrayd/.' $(PACKAGE)/
	@rm -f $(filter-out $(PACKAGED),$(wildcard $(PACKAGE)/bin/*))
	@find $(PACKAGE) -xtype l -delete
	@touch $@

$(PACKAGED): $(PACKAGE)/bin/%: $(BIN)/%
	@mkdir -p $(@D)
	@ln -sf ../../../bin/$* $@

# ---- tests ----

$(BIN)/libarrayd-protocol-test.so: $(PROTOCOL) $(WIRE)
	$(shared) $^ $(MSGPACK_LIBS)

UNIT_protocol := $(A_PROTOCOL)
UNIT_kernels := $(A_KERNELS) $(A_PROTOCOL)
UNIT_server := $(A_SERVER) $(A_PROTOCOL)
UNIT_client := $(A_CLIENT)
# Calls that the tests of a program answer themselves, as nothing else makes them fail (the linker's --wrap).
WRAPS_client := ad__now connect dladdr faccessat fcntl fstat getaddrinfo getpeername getsockopt poll pthread_create read readlink realloc \
	recv send sendmsg socket socketpair stat syscall
WRAPS_protocol := calloc getgroups malloc
WRAPS_server := ad__domain_facts ad__domain_next ad__domain_of ad__domain_tell_if_ready bind close connect flock \
	fopen fsync ftruncate geteuid gethostname getpeername getsockname link listen mkstemp open pread pwrite setsockopt \
	socket uv_poll_init write
WRAPS_embedded := calloc connect dlopen dlsym fcntl getrandom getsockopt malloc memfd_create mmap poll posix_spawn \
	posix_spawn_file_actions_addclosefrom_np posix_spawn_file_actions_adddup2 posix_spawn_file_actions_addopen \
	posix_spawn_file_actions_init posix_spawnattr_init posix_spawnattr_setflags posix_spawnattr_setsigdefault \
	posix_spawnattr_setsigmask pthread_attr_init pthread_create pthread_mutex_init realloc recv recvmsg send sendmsg \
	socket socketpair waitid waitpid
# These take real kernels, compilers and servers: tests/run.py has them as the suite native.
UNIT_embedded := $(A_CLIENT)
UNIT_service := $(A_SERVER) $(A_PROTOCOL)
# Rooms of the worker are tested with those below them alone, so a call that goes up does not link.
ROOMS := base memory journal device spill io checkpoint engine modules exec fusion session sharing recover
rooms_to = $(foreach r,$(wordlist 1,$(words $(shell echo $(ROOMS) | sed 's/ $(1)\b.*/ x/')),$(ROOMS)),\
	$(call objects_below,server/worker/$r,c)) $(OBJ)/tests/unit/worker/fake.o $(COMMON_SERVER) $(A_PROTOCOL)
ROOM_TESTS := engine checkpoint modules exec fusion session sharing recover
$(foreach r,$(ROOM_TESTS),$(eval UNIT_$r := $(call rooms_to,$r) $(COMPILE_SHARED)))
$(foreach r,$(ROOM_TESTS),$(eval LIBS_$r = $$(INI_LIBS) $$(UV_LIBS)))
UNIT_fuse := $(call objects,$(FUSE_PORTABLE)) $(A_PROTOCOL)
LIBS_kernels = $(BLAS_LIBS) $(KERNEL_LIBS)
LIBS_server = $(LIBS_service) -Wl,-u,ad__http_no_tls $(HTTP_LIBS)
LIBS_service = $(INI_LIBS) $(UV_LIBS)

ifeq ($(VARIANT),tsan)
$(UNIT:%=$(TESTS)/%): $(OBJ)/tests/unit/plain/main.o
else
# Criterion's libgit2 takes three quarters of its time to start a test, for nothing: ours stands in for it.
GIT2 := $(shell objdump -p $$($(CC) -print-file-name=libcriterion.so) 2>/dev/null | sed -n 's/^ *NEEDED *\(libgit2\.so.*\)/\1/p')
CRITERION := -lcriterion $(if $(GIT2),-Wl$(comma)--disable-new-dtags$(comma)-rpath$(comma)'$$ORIGIN/lib')
$(UNIT:%=$(TESTS)/%): | $(GIT2:%=$(TESTS)/lib/%)
ifeq ($(VARIANT),coverage)
$(UNIT:%=$(TESTS)/%) $(BIN)/arrayd: $(OBJ)/tests/unit/plain/leave.o
WRAPS_ALL := _exit execve
endif
$(GIT2:%=$(TESTS)/lib/%): $(OBJ)/tests/unit/plain/libgit2.o
	$(shared) $< -Wl,-soname,$(@F)
endif

.SECONDEXPANSION:
$(TESTS)/%: $$(call objects,tests/unit/$$*_*.c tests/unit/$$*_*.cpp) $$(UNIT_$$*)
	@mkdir -p $(@D)
	$(call say,LD )
	$Q$(CXX) $(LINK_FLAGS) $(addprefix -Wl$(comma)--wrap=,$(WRAPS_$*) $(WRAPS_ALL)) -o $@ $^ $(MSGPACK_LIBS) $(LIBS_$*) $(CRITERION) -lm -ldl

$B/checks/%: $$(call objects,tests/build/$$*_*.cpp) $$(UNIT_$$*)
	@mkdir -p $(@D)
	$(call say,LD )
	$Q$(CXX) $(LINK_FLAGS) -o $@ $^ $(MSGPACK_LIBS) -lcriterion -lm -ldl

# The simulator: each program as a shared object whose calls of the system go to tests/sim (the linker's --wrap).
SIM_CALLS := __tls_get_addr accept4 bind calloc close connect dlclose dlopen dlsym dup dup3 epoll_create1 epoll_ctl epoll_wait \
	eventfd eventfd_read eventfd_write execv execve _exit fcntl flock fopen free fstat fstatfs fsync ftruncate futimens getegid geteuid \
	getpeername getpid getppid getrandom getsockname getsockopt ioctl kill listen madvise malloc memfd_create mmap mremap munmap open \
	opendir pipe2 poll posix_spawn prctl printf __printf_chk pread pthread_atfork pthread_sigmask pwrite raise read readlink realloc recv recvmsg \
	sched_getaffinity send sendmsg sendto setrlimit setsockopt shutdown sigaction signal sigprocmask socket socketpair \
	strdup syscall sysconf timer_create timerfd_create timerfd_settime waitid waitpid write
SIM := $B/sim
SIM_CLIENT := $(call objects,tests/sim/client*.c)
SIM_OBJECTS := $(filter-out $(SIM_CLIENT),$(call objects,tests/sim/*.c))
# Counts of branches are written when a copy of a program is dropped, by calls that are not the program's.
SIM_GCOV := $(if $(filter coverage,$(VARIANT)),$(SIM)/libgcov.a)
$(SIM)/libgcov.a: $(shell $(CC) -print-file-name=libgcov.a)
	@mkdir -p $(@D)
	$Qobjcopy $(addprefix --redefine-sym ,open=open64 fcntl=fcntl64 getpid=__getpid close=__close \
		malloc=__libc_malloc calloc=__libc_calloc free=__libc_free) $< $@
sim_program = @mkdir -p $(@D) && $(CC) -shared $(filter-out --coverage,$(LINK_FLAGS)) -Wl,-Bsymbolic -Wl,--strip-debug $(SIM_CALLS:%=-Wl,--wrap=%) -o $@ $^
$(SIM)/sim: $(SIM_OBJECTS)
	@mkdir -p $(@D)
	$(call say,LD )
	$Q$(CC) $(LINK_FLAGS) -rdynamic -o $@ $^ -ldl
# Nobody asks over HTTP there, and libmicrohttpd.a is not made for shared objects.
$(SIM)/arrayd.so: $(FRONT) $(COMMON_SERVER) $(A_PROTOCOL) | $(SIM_GCOV)
	$(sim_program) $(MSGPACK_LIBS) $(INI_LIBS) \
		$$(nm -u $(OBJ)/server/front/observe/http.o | sed -n 's/^ *U \(MHD_.*\)/-Wl,--defsym=\1=ad__http_no_tls/p') $(SIM_GCOV)
$(SIM)/arrayd-worker.so: $(WORKER) $(COMPILE_SHARED) $(COMMON_SERVER) $(A_PROTOCOL) | $(SIM_GCOV)
	$(sim_program) $(MSGPACK_LIBS) $(INI_LIBS) $(SIM_GCOV)
$(SIM)/client.so: $(SIM_CLIENT) $(A_CLIENT) | $(SIM_GCOV)
	$(sim_program) $(MSGPACK_LIBS) $(SIM_GCOV)
ifeq ($(VARIANT),coverage)
$(SIM)/libarrayd-cpu.so: build/release/sim/libarrayd-cpu.so
	@mkdir -p $(@D) && cp $< $@
else
# The backend as it is, but for what makes and maps memory files.
SIM_BACKEND := $(OBJ)/kernels/cpu/backend/slab.o $(OBJ)/protocol/memfd.o
$(SIM_BACKEND:$(OBJ)/%=$(SIM)/%): $(SIM)/%.o: $(OBJ)/%.o
	@mkdir -p $(@D)
	$Qobjcopy $(foreach call,$(SIM_CALLS),--redefine-sym $(call)=__wrap_$(call)) $< $@
$(SIM)/libarrayd-cpu.so: $(SIM_BACKEND:$(OBJ)/%=$(SIM)/%) $(filter-out $(SIM_BACKEND),$(KERNELS) $(PROTOCOL)) $(OBJ)/backend.map
	$(call say,LD )
	$Q$(CXX) -shared $(LINK_FLAGS) -Wl,--strip-debug -Wl,--version-script=$(OBJ)/backend.map -o $@ $(filter %.o,$^) \
		$(MSGPACK_LIBS) $(BLAS_LIBS) $(KERNEL_LIBS)
endif
simulator: $(SIM)/sim $(SIM)/arrayd.so $(SIM)/arrayd-worker.so $(SIM)/client.so $(SIM)/libarrayd-cpu.so

.PHONY: fuzzers simulator
fuzzers: $(FUZZERS:%=build/fuzz/bin/%)
build/fuzz/bin/fuzz_compile: $(COMPILE_SHARED) $(OBJ)/server/common/os.o
build/fuzz/bin/%: build/fuzz/obj/tests/fuzz/%.o $(A_PROTOCOL)
	@mkdir -p $(@D)
	$(call say,LD )
	$Q$(CC) $(LINK_FLAGS) -fsanitize=fuzzer -o $@ $(filter %.o,$^) $(filter %.a,$^) $(MSGPACK_LIBS)

# ---- documents, installing, bundling ----

$(DOCS)/arrayd.8: docs/generate.py docs/creference.py docs/completion.py $(wildcard client-c/man/*.3) $(wildcard docs/man/*.in protocol/*.def) $(call below,server,def) Makefile
	@$(PYTHON) docs/generate.py $(DOCS) $(VERSION)

HEADERS := $(wildcard protocol/*.h protocol/*.def)
MAN3 := $(wildcard client-c/man/*.3)
COMPLETIONS := share/bash-completion/completions share/zsh/vendor-completions share/fish/vendor_completions.d
FILL = sed 's|@PREFIX@|$(PREFIX)|; s|@LIBDIR@|$(LIBDIR)|; s|@SYSCONFDIR@|$(SYSCONFDIR)|; s|@VERSION@|$(VERSION)|'
install: all $(DOCS)/arrayd.8 ## install below DESTDIR and PREFIX (/usr/local)
	$(if $(ISAS_MISSING),@echo "install: libarrayd-cpu.so lacks kernels for $(ISAS_MISSING); install without KERNEL_ISAS" >&2; exit 1)
	install -d $(addprefix $(DESTDIR)$(PREFIX)/,bin lib/arrayd lib/tmpfiles.d lib/sysusers.d \
		include/arrayd/protocol share/man/man1 share/man/man3 share/man/man5 share/man/man8 $(COMPLETIONS)) \
		$(addprefix $(DESTDIR),$(LIBDIR)/pkgconfig $(LIBDIR)/cmake/arrayd $(UNITDIR) $(SYSCONFDIR)/arrayd)
	install -m 755 $(BIN)/arrayd $(BIN)/arrayctl $(DESTDIR)$(PREFIX)/bin/
	install -m 755 $(filter-out %/arrayd %/arrayctl,$(PROGRAMS)) $(DESTDIR)$(PREFIX)/lib/arrayd/
	install -m 644 $(A_CLIENT) $(DESTDIR)$(LIBDIR)/
	install -m 755 $(SO_CLIENT) $(DESTDIR)$(LIBDIR)/
	ln -sf libarrayd.so.0 $(DESTDIR)$(LIBDIR)/libarrayd.so
	$(FILL) client-c/arrayd.pc.in >$(DESTDIR)$(LIBDIR)/pkgconfig/arrayd.pc
	$(FILL) client-c/arrayd-config.cmake.in >$(DESTDIR)$(LIBDIR)/cmake/arrayd/arrayd-config.cmake
	$(FILL) client-c/arrayd-config-version.cmake.in >$(DESTDIR)$(LIBDIR)/cmake/arrayd/arrayd-config-version.cmake
	install -m 644 client-c/include/*.h $(DESTDIR)$(PREFIX)/include/arrayd/
	install -m 644 $(HEADERS) $(DESTDIR)$(PREFIX)/include/arrayd/protocol/
	$(FILL) deploy/arrayd.service >$(DESTDIR)$(UNITDIR)/arrayd.service
	install -m 644 deploy/arrayd.socket $(DESTDIR)$(UNITDIR)/
	install -m 644 deploy/arrayd.tmpfiles $(DESTDIR)$(PREFIX)/lib/tmpfiles.d/arrayd.conf
	install -m 644 deploy/arrayd.sysusers $(DESTDIR)$(PREFIX)/lib/sysusers.d/arrayd.conf
	install -m 644 $(DOCS)/arrayctl.1 $(DESTDIR)$(PREFIX)/share/man/man1/
	install -m 644 $(DOCS)/arrayd.8 $(DESTDIR)$(PREFIX)/share/man/man8/
	install -m 644 $(DOCS)/arrayd.conf.5 $(DESTDIR)$(PREFIX)/share/man/man5/
	install -m 644 $(MAN3) $(DOCS)/man3/*.3 $(DESTDIR)$(PREFIX)/share/man/man3/
	install -m 644 $(DOCS)/completion/bash/* $(DESTDIR)$(PREFIX)/share/bash-completion/completions/
	install -m 644 $(DOCS)/completion/zsh/* $(DESTDIR)$(PREFIX)/share/zsh/vendor-completions/
	install -m 644 $(DOCS)/completion/fish/* $(DESTDIR)$(PREFIX)/share/fish/vendor_completions.d/
	test -e $(DESTDIR)$(SYSCONFDIR)/arrayd/arrayd.conf || \
		install -m 644 $(DOCS)/arrayd.conf $(DESTDIR)$(SYSCONFDIR)/arrayd/

NAME := arrayd-$(VERSION)-linux-x86_64
bundle: all tests $(VENV)/.stamp $(DOCS)/arrayd.8 ## a tar that runs on any x86-64 Linux with glibc 2.36: build/arrayd-<version>-linux-x86_64.tar.xz
	@rm -rf build/$(NAME) && mkdir -p build/$(NAME)/bin build/$(NAME)/tests
	@for f in $(PROGRAMS) $(BIN)/libarrayd-protocol-test.so; do strip --strip-unneeded -o build/$(NAME)/bin/$${f##*/} $$f; done
	@$(VPYTHON) deploy/wheels/build.py build/$(NAME)/dist $(WHEELS)
	@cp -r README.md LICENSE $(DOCS)/arrayd.conf $(wildcard tests/requirements*.txt) build/$(NAME)/
	@cp -r tests/api tests/bench tests/ops tests/wire tests/fault tests/soak $(wildcard tests/gpu) tests/run.py tests/sampling.py tests/long.txt tests/patience.py build/$(NAME)/tests/
	@mkdir build/$(NAME)/protocol && cp protocol/*.def protocol/wire.md build/$(NAME)/protocol/
	@mkdir build/$(NAME)/docs && cp -r docs/examples build/$(NAME)/docs/
	@find build/$(NAME) -name __pycache__ -prune -exec rm -rf {} +
	@tar -C build -c $(NAME) | xz --lzma2=preset=6,dict=128MiB >build/$(NAME).tar.xz
	@ls -l build/$(NAME).tar.xz

-include $(shell test -d $(OBJ) && find $(OBJ) -name '*.d')
