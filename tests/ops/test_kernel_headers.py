"""Headers of the client's host in a user's kernel: what -I names, guards, and what stays the server's."""
import numpy as np
import pytest

import arrayd as ad
from arrayd._kernel import headers
from arrayd.cuda.compiler import CompileException

KERNEL = r"""
%s
extern "C" __global__ void f(double *x) { x[0] = %s; }
"""


def value_of(includes, expression, *options):
    x = ad.zeros(1)
    ad.RawKernel(KERNEL % (includes, expression), "f", options)((1,), (1,), (x,))
    return float(x[0])


@pytest.fixture
def folder(tmp_path):
    for name, text in {
            "once.h": "#pragma once\n#include \"sub/guarded.h\"\nstruct Once {};\n#define ONCE 3\n",
            "sub/guarded.h": "/* guarded */\n#ifndef GUARDED_H\n#define GUARDED_H\n#include \"../once.h\"\n"
                             "#include \"beside.h\"\n#define GUARDED 4\n#endif\n",
            "sub/beside.h": "__device__ inline double beside(double x) { return x + GIVEN; }\n",
            "wrong.h": "__device__ int fine;\n\nint wrong = unknown;\n", "itself.h": '#include "itself.h"\n',
            "cupy/complex.cuh": "#error not the server's\n"}.items():
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
    return tmp_path


@pytest.mark.parametrize("option", ["-I{}", "-I {}", " -I{}", "--include-path={}", "--include-path {}"])
def test_folders_that_options_name(folder, option):
    options = [option.format(folder)] if option[0] == " " else option.format(folder).split(" ")
    assert value_of("#include <once.h>", "beside(ONCE) + GUARDED", "-DGIVEN=10", *options) == 17


def test_an_include_counts_where_it_stands(folder):
    includes = ("#ifdef NEVER\n#include \"once.h\"\n#else\n  # include <once.h> // for ONCE\n#endif\n"
                "#include \"once.h\"\n/*\n#include \"wrong.h\"\n*/\n"
                'static const __device__ char text[] = R"(\n#include "wrong.h"\n)";')
    assert value_of(includes, "ONCE + sizeof text", "-DGIVEN=1", f"-I{folder}") == 3 + len('\n#include "wrong.h"\n') + 1


def test_the_first_folder_that_has_it(folder, tmp_path_factory):
    other = tmp_path_factory.mktemp("other")
    (other / "once.h").write_text("#define ONCE 5\n")
    both = (f"-I{other}", f"-I{folder}", "-DGIVEN=1")
    assert value_of("#include <once.h>", "ONCE", *both) == 5
    assert value_of('#include <once.h>\n#undef ONCE\n#include "sub/guarded.h"', "ONCE", *both) == 3  # beside the other
    (other / "once.h").write_text("#define ONCE 6\n")
    assert value_of("#include <once.h>", "ONCE", *both) == 6  # read again


def test_headers_of_the_server(folder):
    includes = "#include <cupy/complex.cuh>\n#include <cuda_fp16.h>"
    assert value_of(includes, "complex<double>(1, 2).imag() + __half2float(__float2half(3))", f"-I{folder}") == 5
    (folder / "cuda_runtime_api.h").touch()  # makes it a toolkit's
    assert headers.folders((f"-I{folder}", "-I", "/none", "-O3", "--include-path=x")) == ["/none", "x"]
    with pytest.raises(CompileException, match="once.h"):
        value_of("#include <once.h>", "ONCE", f"-I{folder}")


def test_errors(folder):
    with pytest.raises(CompileException, match=r"wrong\.h[:(]3\b") as error:
        value_of('#include "wrong.h"', "1", f"-I{folder}")
    assert "unknown" in str(error.value)
    with pytest.raises(CompileException, match=r"source[:(]3\b"):
        value_of('#include "sub/beside.h"', "unknown", f"-I{folder}", "-DGIVEN=1")
    with pytest.raises(ValueError, match="without a guard"):
        value_of('#include "itself.h"', "1", f"-I{folder}")
    (folder / "latin.h").write_bytes(b"// \xe4\n")
    with pytest.raises(UnicodeDecodeError):
        value_of('#include "latin.h"', "1", f"-I{folder}")


def test_other_kernels(folder):
    kernel = ad.ElementwiseKernel("T x", "T y", "y = beside(x)", "k", preamble='#include "sub/beside.h"',
                                  options=(f"-I{folder}", "-DGIVEN=2"))
    np.testing.assert_array_equal(kernel(ad.arange(3.0)).get(), [2, 3, 4])
    assert headers.inline("#include <once.h>\n", []) == "#include <once.h>\n"


def test_limits_of_cudas_library():
    """<cuda/std/limits> brings the macros of <climits>, as CUDA's own does."""
    assert value_of("#include <cuda/std/limits>", "UINT_MAX - (double)cuda::std::numeric_limits<int>::max()") == 2**31


def test_functions_of_cudas_library():
    assert value_of("#include <cuda/std/cmath>", "cuda::std::sqrt(9.0) + cuda::std::abs(-1.5f)") == 4.5
    assert value_of("#include <cuda/std/cmath>", "sizeof cuda::std::pow(2.f, 3.f) + cuda::std::isnan(NAN)") == 5


def test_move_and_forward_need_no_header():
    assert value_of("", "std::move(3.0) + std::forward<double>(2.0)", "-DGIVEN=1") == 5
    with pytest.raises(CompileException, match="std::move.unknown") as error:
        ad.RawKernel('extern "C" __global__ void f(int *x) { x[0] = std::move(unknown); }', "f").compile()
    assert "unknown" in str(error.value) and "utility" not in str(error.value)
