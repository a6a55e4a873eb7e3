# How the kernels are compiled; included by the Makefile, which compiles kernels/cpu with KERNEL_CXXFLAGS.
# kernels/cpu/isa/*.cpp are compiled once for each of KERNEL_ISAS and chosen from when the backend is loaded.

# Under a sanitizer templates at -O3 take an hour to compile and find nothing more.
KERNEL_O := $(if $(SANITIZE),-O1,-O3)
KERNEL_CXXFLAGS := $(KERNEL_O) -fwrapv -fno-math-errno -fno-trapping-math -ffp-contract=off -Wno-type-limits -Wno-bool-compare

# One instruction set does for the sanitizers; the best comes last.
ifeq ($(shell uname -m),x86_64)
KERNEL_ISAS ?= $(if $(filter release,$(VARIANT)),v2 v3 v4,v3)
KERNEL_LIBS := -lmvec -lm
else
KERNEL_ISAS ?= plain
KERNEL_LIBS := -lm
endif
# Without sinking and partial redundancy elimination selects stay in one piece, which loops need to vectorise.
ISA_CXXFLAGS := $(KERNEL_O) -g1 -fno-tree-sink -fno-tree-pre
ISA_FLAGS_v2 := -march=x86-64-v2
ISA_FLAGS_v3 := -march=x86-64-v3
ISA_FLAGS_v4 := -march=x86-64-v4 -mprefer-vector-width=512
ISA_TEST_v2 := has_v2()
ISA_TEST_v3 := has_v3()
ISA_TEST_v4 := has_v4()
ISA_TEST_plain := true

ISA_SOURCES := $(wildcard kernels/cpu/isa/*.cpp)
ISA_OBJECTS := $(foreach i,$(KERNEL_ISAS),$(ISA_SOURCES:%.cpp=$(OBJ)/%.$i.o))
KERNELS += $(ISA_OBJECTS)

$(OBJ)/kernels/cpu/kernels.o: CXXFLAGS += -DAD_ISAS='$(foreach i,$(KERNEL_ISAS),X($i, $(ISA_TEST_$i)))'

define isa_rule
$$(OBJ)/kernels/cpu/isa/%.$1.o: kernels/cpu/isa/%.cpp $$(OBJ)/flags kernels/flags.mk | build/.deps
	@mkdir -p $$(@D)
	$$(call say,CXX)
	$$Q$$(CXX) $$(CXX_FLAGS) $$(KERNEL_CXXFLAGS) $$(ISA_CXXFLAGS) -DAD_ISA=$1 $$(ISA_FLAGS_$1) \
		$$(DEPEND) -c $$< -o $$@
endef
$(foreach i,$(KERNEL_ISAS),$(eval $(call isa_rule,$i)))

$(OBJ)/kernels/cpu/special/%.o: CXXFLAGS += $(FETCHED_FLAGS)
$(patsubst kernels/cpu/special/%.cpp,$(OBJ)/kernels/cpu/special/%.o,$(wildcard kernels/cpu/special/*.cpp)): $(FETCHED)/.stamp

# Transforms and factors are sums of products, which may round once.
ISA_FACTOR := $(foreach i,$(KERNEL_ISAS),$(OBJ)/kernels/cpu/isa/factor.$i.o)
$(ISA_FACTOR): ISA_CXXFLAGS := $(KERNEL_O) -g1 -ffp-contract=fast
# The sums of series in math.h become straight code, without which loops over them do not vectorise.
ISA_SERIES := $(foreach i,$(KERNEL_ISAS),$(OBJ)/kernels/cpu/isa/ufunc_float.$i.o)
$(ISA_SERIES): ISA_CXXFLAGS += --param max-completely-peel-times=32 --param max-completely-peeled-insns=1000
ISA_FFT := $(foreach i,$(KERNEL_ISAS),$(OBJ)/kernels/cpu/isa/fft.$i.o)
$(ISA_FFT): CXXFLAGS += $(FETCHED_FLAGS)
$(ISA_FFT): ISA_CXXFLAGS := $(KERNEL_O) -g1 -ffp-contract=fast
$(ISA_FFT): $(FETCHED)/.stamp

# The assembler reads these (kernels/run.cpp), so make has to know.
$(OBJ)/kernels/run.o: $(wildcard kernels/run/*.h)

# ---- cuda ----
# The .cu and .cpp files below kernels/cuda, and kernels/*.cpp once more, each to its own object below CUDA_OBJ. Only the release has
# them: the sanitizers know nothing of device memory.
#
# CUDA_ARCHS: the GPUs to compile for. Each costs minutes and megabytes, so usually those that are here (90 where there
# is none); all of CUDA_ALL for the bundle, which is meant for other hosts. `make wheel CUDA_ARCHS="80 90"` as one likes,
# `CUDA_ARCHS=all` for all. Code for 80 also runs on 86 and 89; what is newer than the newest compiles its PTX once.
CUDA_ALL := 80 90 100 120
CUDA_HERE = $(subst .,,$(shell nvidia-smi --query-gpu=compute_cap --format=csv,noheader 2>/dev/null | grep -x '[0-9.]*'))
ifeq ($(filter bundle,$(MAKECMDGOALS)),)
CUDA_ARCHS ?= $(or $(CUDA_HERE),90)
else
CUDA_ARCHS ?= all
endif
# Where there is no GPU, `make test` and `make demo` compile what cannot run there the quick way, in half the time.
ifeq ($(origin CUDA_QUICK),undefined)
ifneq ($(MAKECMDGOALS),)
ifeq ($(filter-out test test-rest test-all demo,$(MAKECMDGOALS))$(filter-out file,$(origin CUDA_ARCHS))$(CUDA_HERE),)
CUDA_QUICK := $(if $(NVCC),$(shell $(NVCC) --help | grep -q -e --Ofast-compile && echo --Ofast-compile=max))
endif
endif
endif
export CUDA_QUICK
ARCHS := $(shell printf '%s\n' $(if $(filter all,$(CUDA_ARCHS)),$(CUDA_ALL),$(CUDA_ARCHS)) | sort -nu)

empty :=
CUDA_OBJ := $(OBJ)/cuda-$(subst $(empty) ,-,$(ARCHS))$(if $(CUDA_QUICK),-quick)
CUDA_HOME ?= $(if $(NVCC),$(abspath $(dir $(realpath $(NVCC)))..))
CUDA_LIB := $(firstword $(wildcard $(CUDA_HOME)/lib64 $(CUDA_HOME)/lib))
NVCC_FLAGS := -std=c++17 -O3 $(CUDA_QUICK) --expt-relaxed-constexpr -DAD_ISA=gpu -D_GNU_SOURCE -I. $(if $(word 2,$(ARCHS)),--compress-mode=size,-Xfatbin -compress-all) \
	$(foreach a,$(ARCHS),-gencode arch=compute_$a,code=sm_$a) \
	-gencode arch=compute_$(lastword $(ARCHS)),code=compute_$(lastword $(ARCHS)) \
	-Xcompiler -fPIC,-fno-strict-aliasing,-g1 -diag-suppress 68,128,177,186,1650 $(NVCCFLAGS)
CUDA_CXXFLAGS := -DAD_ISA=gpu -isystem $(CUDA_HOME)/include
# Of the protocol what needs no msgpack.
CUDA_PROTOCOL := $(filter-out %/encode.o,$(PROTOCOL))
CUDA_OBJECTS := $(patsubst %,$(CUDA_OBJ)/%.o,$(basename $(CUDA_SOURCES)))
$(CUDA_OBJ)/kernels/run.o: $(wildcard kernels/run/*.h)

# Chains are compiled at run time from headers that are embedded in an object: the assembler reads them, so make has to
# know. FUSE_PORTABLE needs no CUDA; tests/unit/fuse_*.cpp and tests/build/fuse_*.cpp test it everywhere.
FUSE_HEADERS := kernels/types.h kernels/math.h kernels/special.h kernels/special_gpu.h kernels/math_libm.h kernels/math_complex.h kernels/accumulate.h \
	kernels/random.h kernels/random_block.h protocol/dtype.def protocol/distribution.def $(addprefix kernels/cuda/, \
	backend/divide.h call/scan/scan.h call/scan/parts.cuh fuse/argument.h fuse/device.cuh fuse/fold.cuh fuse/random.cuh \
	fuse/scan.cuh reduce/reduce.h reduce/fold.cuh reduce/states.cuh ufunc/vector.cuh)
FUSE_PORTABLE := $(addprefix kernels/cuda/fuse/,headers.cpp plan.cpp source.cpp)
$(OBJ)/kernels/cuda/fuse/headers.o $(CUDA_OBJ)/kernels/cuda/fuse/headers.o: $(FUSE_HEADERS)

# Where the libraries of CUDA are at run time: in the Python packages nvidia-*, beside a wheel that is installed; in
# the toolkit; or where the dynamic linker looks anyway.
CUDA_RUNPATH := $$ORIGIN/../../nvidia/cu13/lib:/usr/local/cuda/lib64:/usr/local/cuda-13/lib64
CUDA_LIBS := -L$(CUDA_LIB) -Wl,-rpath-link,$(CUDA_LIB) -Wl,-rpath,'$(CUDA_RUNPATH)' -Wl,--as-needed \
	-Wl,--wrap=__cudaRegisterFunction -lcusolver -lcufft -lcublas -l:libcudart_static.a -ldl -lrt

$(CUDA_OBJ)/flags: FORCE
	@mkdir -p $(@D)
	@echo '$(NVCC) $(NVCC_FLAGS)' | cmp -s - $@ || echo '$(NVCC) $(NVCC_FLAGS)' >$@

$(CUDA_OBJ)/%.o: %.cu $(CUDA_OBJ)/flags | build/.deps
	@mkdir -p $(@D)
	$(call say,NVCC)
	$Q$(NVCC) $(NVCC_FLAGS) -MMD -MP -MF $(@:.o=.d) -c $< -o $@

$(CUDA_OBJ)/%.o: %.cpp $(CUDA_OBJ)/flags | build/.deps
	@mkdir -p $(@D)
	$(call say,CXX)
	$Q$(CXX) $(CXX_FLAGS) $(KERNEL_CXXFLAGS) $(CUDA_CXXFLAGS) $(DEPEND) -c $< -o $@

# Each operation rounds by itself, as NumPy's do, and as chains do.
$(CUDA_OBJ)/kernels/cuda/ufunc/%.o $(CUDA_OBJ)/kernels/cuda/special/%.o $(CUDA_OBJ)/kernels/cuda/list/%.o $(addprefix $(CUDA_OBJ)/kernels/cuda/call/,fill.o random/random.o): NVCC_FLAGS += -fmad=false

# nvcc reads a copy of xsf that is made for it.
$(FETCHED)/cuda/.stamp: $(FETCHED)/.stamp kernels/special/xsf.sed kernels/special/xsf_lpmv.sh
	@rm -rf $(@D) && mkdir -p $(@D) && cp -r $(FETCHED)/include/xsf $(@D)/
	@kernels/special/xsf_lpmv.sh $(FETCHED)/include/xsf/specfun/specfun.h >$(@D)/xsf/lpmv.h
	@find $(@D) -name '*.h' -exec sed -E -i -f kernels/special/xsf.sed {} +
	@touch $@
CUDA_SPECIAL := $(patsubst %.cu,$(CUDA_OBJ)/%.o,$(wildcard kernels/cuda/special/*.cu))
$(CUDA_SPECIAL): $(FETCHED)/cuda/.stamp
$(CUDA_SPECIAL): NVCC_FLAGS += -I$(FETCHED)/cuda -diag-suppress 20014

# Most special functions are long chains of calls. nvcc's optimiser takes minutes for them, and ten seconds without its
# most expensive steps; those that CUDA has are compiled as all others. Some call themselves, so the compiler cannot tell
# their stack; kernels/cuda/ufunc/launch.cpp provides for it.
$(CUDA_SPECIAL): NVCC_FLAGS += -Xptxas --suppress-stack-size-warning
$(filter-out %/elementary.o %/bessel.o,$(CUDA_SPECIAL)): NVCC_FLAGS += $(if $(CUDA_QUICK),,--Ofast-compile=min)

# Made again when what is linked is another directory's.
$(OBJ)/cuda-archs: FORCE
	@mkdir -p $(@D)
	@echo '$(CUDA_OBJ)' | cmp -s - $@ || echo '$(CUDA_OBJ)' >$@
