# How the kernels are compiled; included by the Makefile, which compiles kernels/cpu/*.cpp with KERNEL_CXXFLAGS.
# kernels/cpu/isa/*.cpp are compiled once for each of KERNEL_ISAS and chosen from when the backend is loaded.

KERNEL_CXXFLAGS := -O3 -fwrapv -fno-math-errno -fno-trapping-math -ffp-contract=off -Wno-type-limits -Wno-bool-compare

# One instruction set does for the sanitizers; the best comes last.
ifeq ($(shell uname -m),x86_64)
KERNEL_ISAS ?= $(if $(filter release,$(VARIANT)),v2 v3 v4,v3)
KERNEL_LIBS := -lmvec -lm
else
KERNEL_ISAS ?= plain
KERNEL_LIBS := -lm
endif
# Without sinking and partial redundancy elimination selects stay in one piece, which loops need to vectorise.
ISA_CXXFLAGS := -O3 -g1 -fno-tree-sink -fno-tree-pre
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

$(OBJ)/kernels/cpu/kernels.o: KERNEL_CXXFLAGS += -DAD_ISAS='$(foreach i,$(KERNEL_ISAS),X($i, $(ISA_TEST_$i)))'

define isa_rule
$$(OBJ)/kernels/cpu/isa/%.$1.o: kernels/cpu/isa/%.cpp $$(OBJ)/flags kernels/flags.mk | build/.deps
	@mkdir -p $$(@D)
	$$(CXX) $$(CXX_FLAGS) $$(KERNEL_CXXFLAGS) $$(ISA_CXXFLAGS) -DAD_ISA=$1 $$(ISA_FLAGS_$1) \
		$$(DEPEND) -c $$< -o $$@
endef
$(foreach i,$(KERNEL_ISAS),$(eval $(call isa_rule,$i)))

# One architecture unless asked for more; relocatable, because the kernels share a device variable.
CUDA_ARCH ?= 90
NVCC_FLAGS := -std=c++17 -O3 -rdc=true --expt-relaxed-constexpr -arch=sm_$(CUDA_ARCH) -DAD_ISA=gpu -D_GNU_SOURCE \
	-diag-suppress 68,128,177,186,1650 -t 2
