"""Textures and surfaces: what kernels read of them, beside CUDA's rules written in NumPy; what they write; errors."""
import gc
import itertools

import numpy as np
import pytest

import arrayd as ad
from arrayd import cuda
from arrayd.cuda import runtime
from arrayd.cuda.texture import (ChannelFormatDescriptor, CUDAarray, ResourceDescriptor, SurfaceObject, TextureDescriptor,
                                 TextureObject)

RNG = np.random.default_rng(77)
SAMPLE = r"""
extern "C" __global__ void one(const float *at, float *out, cudaTextureObject_t t) {
    out[threadIdx.x] = tex1D<float>(t, at[threadIdx.x]);
}
extern "C" __global__ void two(const float2 *at, float *out, cudaTextureObject_t t) {
    tex2D(out + threadIdx.x, t, at[threadIdx.x].x, at[threadIdx.x].y);
}
extern "C" __global__ void three(const float *at, float *out, cudaTextureObject_t t) {
    const float *p = at + 3 * threadIdx.x;
    out[threadIdx.x] = tex3D<float>(t, p[0], p[1], p[2]);
}
extern "C" __global__ void row(int *out, int from, cudaTextureObject_t t) {
    out[threadIdx.x] = tex1Dfetch<int>(t, from + (int)threadIdx.x);
}
extern "C" __global__ void layer(float4 *out, cudaTextureObject_t t, int layer) {
    out[threadIdx.x] = tex2DLayered<float4>(t, threadIdx.x, 1.0f, layer);
}
extern "C" __global__ void level(float *out, cudaTextureObject_t t) {
    out[0] = tex1DLod<float>(t, 1.0f, 3.0f);
    out[1] = tex2DLod<float>(t, 1.0f, 0.0f, 3.0f);
    out[2] = tex3DLod<float>(t, 1.0f, 0.0f, 0.0f, 3.0f);
}
"""
KERNELS = ad.RawModule(code=SAMPLE)
WRAP, CLAMP, MIRROR, BORDER = range(4)
KINDS = {"i": runtime.cudaChannelFormatKindSigned, "u": runtime.cudaChannelFormatKindUnsigned,
         "f": runtime.cudaChannelFormatKindFloat}


def channels_of(dtype, n=1):
    dtype = np.dtype(dtype)
    bits = (8 * dtype.itemsize,) * n + (0,) * (4 - n)
    return ChannelFormatDescriptor(*bits, KINDS[dtype.kind])


def elements_of(values, n=1, flags=0):
    sizes = (values.shape[-1] // n, *values.shape[-2::-1])
    elements = CUDAarray(channels_of(values.dtype, n), *sizes, flags=flags)
    elements.copy_from(values)
    return elements


def texture_of(values, *how, n=1, flags=0, **more):
    resource = ResourceDescriptor(runtime.cudaResourceTypeArray, cuArr=elements_of(values, n, flags))
    return TextureObject(resource, TextureDescriptor(*how, **more))


def launch(name, at, texture):
    at = np.asarray(at, "float32")
    out = ad.zeros(len(at), "float32")
    KERNELS.get_function(name)((1,), (len(at),), (ad.asarray(at), out, texture))
    return out.get()


# ---- CUDA's rules ----

def index_of(i, n, mode):
    """The element that an index means; None: the border."""
    if mode == CLAMP:
        return min(max(i, 0), n - 1)
    if mode == BORDER:
        return i if 0 <= i < n else None
    i %= n if mode == WRAP else 2 * n
    return i if i < n else 2 * n - 1 - i


def places(x, n, mode, linear, relative):
    """Pairs of elements along an axis and their weights."""
    x = np.float32(x)
    if relative:
        x = np.float32((x - np.floor(x) if mode == WRAP else x - 2 * np.floor(x / 2) if mode == MIRROR else x) * n)
    elif mode in (WRAP, MIRROR):
        mode = CLAMP
    if not linear:
        return [(index_of(int(np.floor(x)), n, mode), 1.0)]
    x = np.float32(x - np.float32(0.5))
    low = int(np.floor(x))
    weight = np.floor((x - low) * 256 + 0.5) / 256
    return [(index_of(low, n, mode), 1 - weight), (index_of(low + 1, n, mode), weight)]


def expected(values, at, modes, linear, relative, border=0.0):
    result = 0.0
    axes = [places(x, n, mode, linear, relative) for x, n, mode in zip(at, values.shape[::-1], modes)]
    for corner in itertools.product(*axes):
        index = tuple(i for i, _ in corner[::-1])
        result += np.prod([weight for _, weight in corner]) * (border if None in index else float(values[index]))
    return result


@pytest.mark.parametrize("relative", [False, True])
@pytest.mark.parametrize("linear", [False, True])
@pytest.mark.parametrize("mode", [WRAP, CLAMP, MIRROR, BORDER])
@pytest.mark.parametrize("ndim", [1, 2, 3])
def test_sampling(ndim, mode, linear, relative):
    values = RNG.normal(size=(5, 4, 7)[-ndim:]).astype("float32")
    sizes = np.array(values.shape[::-1])
    at = RNG.uniform(-1.6, 2.6, size=(200, ndim)) * (1 if relative else sizes)
    at = at.astype("float32")
    texture = texture_of(values, (mode,) * ndim, int(linear), normalizedCoords=relative, borderColors=(2.5,))
    got = launch(("one", "two", "three")[ndim - 1], at, texture)
    want = [expected(values, p, (mode,) * ndim, linear, relative, 2.5) for p in at]
    np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-5)


def test_modes_of_axes():
    values = RNG.normal(size=(4, 6)).astype("float32")
    at = RNG.uniform(-2, 3, size=(100, 2)).astype("float32")
    got = launch("two", at, texture_of(values, (MIRROR, WRAP), 0, normalizedCoords=1))
    np.testing.assert_array_equal(got, np.float32([expected(values, p, (MIRROR, WRAP), False, True) for p in at]))


@pytest.mark.parametrize("relative", [0, 1])
@pytest.mark.parametrize("linear", [0, 1])
def test_coordinates_that_are_nowhere(linear, relative):
    values = np.arange(1, 6, dtype="float32")
    far = np.float32([np.nan, np.inf, -np.inf, 3e38, -3e38, 1e10, -1e10, 2.0**31, -2.0**31])
    for mode in (WRAP, CLAMP, MIRROR, BORDER):
        got = launch("one", far, texture_of(values, (mode,), linear, normalizedCoords=relative))
        assert np.all((got == 0) & (mode == BORDER) | (1 <= got) & (got <= 5)), (mode, got)


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int16", "uint16"])
def test_normalized_integers(dtype):
    limits = np.iinfo(dtype)
    values = np.array([limits.min, limits.min + 1, 0, 1, limits.max], dtype)
    at = np.arange(5) + 0.5
    want = np.maximum(values.astype("float32") / np.float32(limits.max), -1)
    np.testing.assert_allclose(launch("one", at, texture_of(values, (CLAMP,), 0, 1)), want, rtol=1e-6)
    between = launch("one", [1.75], texture_of(values, (CLAMP,), 1, 1))
    np.testing.assert_allclose(between, 0.75 * want[1] + 0.25 * want[2], rtol=1e-5)
    np.testing.assert_array_equal(launch("one", at, texture_of(values, (CLAMP,))), values.astype("float32"))


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int16", "uint16", "int32", "uint32"])
def test_integers(dtype):
    limits = np.iinfo(dtype)
    values = ad.array([limits.min, 0, 1, limits.max], dtype)
    resource = ResourceDescriptor(runtime.cudaResourceTypeLinear, arr=values, chDesc=channels_of(dtype),
                                  sizeInBytes=values.nbytes)
    texture = TextureObject(resource, TextureDescriptor())
    out = ad.full(8, 7, "int32")
    KERNELS.get_function("row")((1,), (8,), (out, np.int32(-2), texture))
    np.testing.assert_array_equal(out.get(), np.pad(values.get().astype("int32"), 2))  # beyond it there are zeros
    values[1] = 5  # a launch sees what there is then
    KERNELS.get_function("row")((1,), (8,), (out, np.int32(-2), texture))
    assert out[3] == 5


def test_halves():
    values = np.array([0, -0.0, 1, -2.5, 65504, 6e-8, -6e-5, np.inf, -np.inf, np.nan], "float16")
    got = launch("one", np.arange(10) + 0.5, texture_of(values, (CLAMP,)))
    np.testing.assert_array_equal(got, values.astype("float32"))
    assert np.signbit(got[1]) and not np.signbit(got[0])


def test_srgb():
    values = np.array([0, 10, 128, 255], "uint8")
    got = launch("one", np.arange(4) + 0.5, texture_of(values, (CLAMP,), 0, 1, sRGB=True))
    share = values / 255
    np.testing.assert_allclose(got, np.where(share <= 0.04045, share / 12.92, ((share + 0.055) / 1.055) ** 2.4), rtol=1e-5)


def test_layers_and_channels():
    values = RNG.normal(size=(3, 2, 4 * 5)).astype("float32")
    texture = texture_of(values, (CLAMP, CLAMP), n=4, flags=runtime.cudaArrayLayered)
    for layer, means in ((0, 0), (2, 2), (7, 2), (-1, 0)):
        out = ad.zeros((5, 4), "float32")
        KERNELS.get_function("layer")((1,), (5,), (out, texture, np.int32(layer)))
        np.testing.assert_array_equal(out.get(), values[means, 1].reshape(5, 4))


def test_levels():
    values = RNG.normal(size=(2, 2, 3)).astype("float32")
    out = ad.zeros(3, "float32")
    KERNELS.get_function("level")((1,), (1,), (out, texture_of(values, (CLAMP,) * 3)))
    np.testing.assert_array_equal(out.get(), [values[0, 0, 1]] * 3)


def test_rows_of_an_array():
    values = RNG.normal(size=(6, 10)).astype("float32")
    resource = ResourceDescriptor(runtime.cudaResourceTypePitch2D, arr=ad.asarray(values), chDesc=channels_of("f4"), width=7,
                                  height=5, pitchInBytes=40)
    at = RNG.uniform(0, (7, 5), size=(50, 2)).astype("float32")
    got = launch("two", at, TextureObject(resource, TextureDescriptor((CLAMP, CLAMP))))
    np.testing.assert_array_equal(got, values[at[:, 1].astype(int), at[:, 0].astype(int)])
    assert resource.get_resource_desc()["pitch2D"]["pitchInBytes"] == 40


def test_elementwise():
    values = RNG.normal(size=(3, 4)).astype("float32")
    texture = texture_of(values, (CLAMP, CLAMP))
    kernel = ad.ElementwiseKernel("T x, U t, int64 width", "T y", "y = x + tex2D<T>(t, i % width, i / width)", "sampled")
    np.testing.assert_array_equal(kernel(ad.ones((3, 4), "float32"), texture, 4).get(), values + 1)


def test_an_object_as_a_number():
    texture = texture_of(np.arange(4, dtype="float32"), (CLAMP,))
    np.testing.assert_array_equal(launch("one", [2.5], texture.ptr), [2])


def test_many_ways_to_sample_an_array():
    elements = elements_of(np.float32([1, 2, 3]))
    resource = ResourceDescriptor(runtime.cudaResourceTypeArray, cuArr=elements)

    def bordered(color):
        return TextureObject(resource, TextureDescriptor((BORDER,), borderColors=(color,)))

    kept = [bordered(color) for color in range(64)]
    assert [launch("one", [9.0], texture)[0] for texture in kept] == list(range(64))
    assert launch("one", [9.0], bordered(7.0))[0] == 7  # as another one
    with pytest.raises(ad.LimitError, match="64 kinds"):
        bordered(64.0)
    del kept[3]
    gc.collect()
    assert launch("one", [9.0], bordered(64.0))[0] == 64
    assert [launch("one", [9.0], texture)[0] for texture in kept[:4]] == [0, 1, 2, 4]


# ---- surfaces ----

SURFACES = ad.RawModule(code=r"""
extern "C" __global__ void fill(cudaSurfaceObject_t s, int mode) {
    int x = threadIdx.x - 1, y = threadIdx.y - 1, z = threadIdx.z - 1;
    surf3Dwrite((float)(100 * z + 10 * y + x), s, 4 * x, y, z, (cudaSurfaceBoundaryMode)mode);
}
extern "C" __global__ void copy(cudaSurfaceObject_t s, short2 *out, cudaSurfaceBoundaryMode mode) {
    int x = (int)threadIdx.x - 1;
    short2 other;
    surf2Dread(&other, s, 4 * x, 1, mode);
    short2 mine = surf2Dread<short2>(s, 4 * x, 0, mode);
    out[threadIdx.x] = make_short2(mine.x, other.y);
}
extern "C" __global__ void wide(cudaSurfaceObject_t s, cudaSurfaceBoundaryMode mode) {
    surf1Dwrite(make_float4(1, 2, 3, 4), s, 0, mode);
}
extern "C" __global__ void layers(cudaSurfaceObject_t s) {
    surf2DLayeredwrite(surf2DLayeredread<float>(s, 4 * threadIdx.x, 0, 0) + 1, s, 4 * threadIdx.x, 0, 1);
}
""")


def surface_of(elements):
    return SurfaceObject(ResourceDescriptor(runtime.cudaResourceTypeArray, cuArr=elements))


def read(elements):
    out = np.empty(elements._shown().shape, elements._dtype)
    elements.copy_to(out)
    return out


def test_writing_and_what_is_beyond():
    elements = elements_of(np.full((2, 3, 4), -1, "float32"), flags=runtime.cudaArraySurfaceLoadStore)
    fill = SURFACES.get_function("fill")
    fill((1,), (6, 5, 4), (surface_of(elements), np.int32(0)))  # cudaBoundaryModeZero: nothing is written beyond
    z, y, x = np.indices((2, 3, 4))
    np.testing.assert_array_equal(read(elements), 100 * z + 10 * y + x)


def test_reading_beyond():
    values = RNG.integers(-99, 99, size=(2, 6)).astype("int16")
    surface = surface_of(elements_of(values, 2, runtime.cudaArraySurfaceLoadStore))
    for mode, width in ((0, "constant"), (1, "edge")):
        out = ad.full((5, 2), 9, "int16")
        SURFACES.get_function("copy")((1,), (5,), (surface, out, np.int32(mode)))
        np.testing.assert_array_equal(out.get(), np.pad(np.stack((values[0, ::2], values[1, 1::2]), 1), ((1, 1), (0, 0)),
                                                        width))


def test_elements_that_are_too_wide():
    elements = elements_of(np.zeros(8, "float32"), flags=runtime.cudaArraySurfaceLoadStore)
    for mode in (0, 1):
        SURFACES.get_function("wide")((1,), (1,), (surface_of(elements), np.int32(mode)))
    assert not read(elements).any()


def test_layers_of_a_surface():
    flags = runtime.cudaArrayLayered | runtime.cudaArraySurfaceLoadStore
    elements = elements_of(np.arange(8, dtype="float32").reshape(2, 2, 2), flags=flags)
    SURFACES.get_function("layers")((1,), (2,), (surface_of(elements),))
    np.testing.assert_array_equal(read(elements), [[[0, 1], [2, 3]], [[1, 2], [6, 7]]])


def test_a_texture_of_what_a_surface_writes():
    elements = elements_of(np.zeros((2, 2, 2), "float32"), flags=runtime.cudaArraySurfaceLoadStore)
    texture = TextureObject(ResourceDescriptor(runtime.cudaResourceTypeArray, cuArr=elements),
                            TextureDescriptor((CLAMP,) * 3))
    SURFACES.get_function("fill")((1,), (3, 3, 3), (surface_of(elements), np.int32(0)))
    np.testing.assert_array_equal(launch("three", [(1, 1, 1), (0, 1, 0)], texture), [111, 10])


# ---- copies and errors ----

def test_copies():
    values = RNG.integers(0, 99, size=(4, 12)).astype("uint8")
    elements = elements_of(values, 4)
    assert (elements.width, elements.height, elements.depth, elements.ndim, elements.flags) == (3, 4, 0, 2, 0)
    out, stream = ad.zeros((4, 12), "uint8"), cuda.Stream()
    elements.copy_to(out, stream)
    stream.synchronize()
    np.testing.assert_array_equal(out.get(), values)
    elements.copy_from(ad.asarray(values)[::-1], stream)
    np.testing.assert_array_equal(read(elements), values[::-1])
    with pytest.raises(ValueError, match="shape mismatch"):
        elements.copy_from(values[:3])
    with pytest.raises(ValueError, match="dtype mismatch"):
        elements.copy_from(values.astype("int8"))
    with pytest.raises(ValueError, match="C-contiguous"):
        elements.copy_to(np.empty((12, 4), "uint8").T)
    with pytest.raises(TypeError, match="in_arr must be an ndarray"):
        elements.copy_from(values.tolist())


def test_what_descriptors_tell():
    channel = ChannelFormatDescriptor(16, 16, 0, 0, runtime.cudaChannelFormatKindSigned)
    assert channel.get_channel_format() == {"x": 16, "y": 16, "z": 0, "w": 0, "f": 0}
    texture = TextureDescriptor((CLAMP, BORDER), 1, 0, borderColors=[1, 2], normalizedCoords=1)
    assert texture.get_texture_desc() == {"addressMode": (CLAMP, BORDER, 0), "filterMode": 1, "readMode": 0, "sRGB": 0,
                                          "borderColor": (1, 2, 0, 0), "normalizedCoords": 1, "maxAnisotropy": 0}
    elements = CUDAarray(channel, 3)
    resource = ResourceDescriptor(runtime.cudaResourceTypeArray, cuArr=elements)
    assert resource.get_resource_desc() == {"resType": 0, "array": {"array": elements.ptr}}


def test_errors():
    real, whole = channels_of("float32"), channels_of("uint8")
    for sizes in ((0,), (3, 0, 2), (3, -1)):
        with pytest.raises(ValueError, match="To create"):
            CUDAarray(real, *sizes)
    for bits in ((32, 32, 32, 0), (32, 16, 0, 0), (0, 32, 0, 0), (8, 0, 0, 0)):
        with pytest.raises(runtime.CUDARuntimeError, match="cudaErrorInvalidValue: channels"):
            CUDAarray(ChannelFormatDescriptor(*bits, runtime.cudaChannelFormatKindFloat), 3)
    with pytest.raises(runtime.CUDARuntimeError, match="a row must have less"):
        CUDAarray(real, 1 << 29)
    with pytest.raises(NotImplementedError, match="flags=4"):
        CUDAarray(real, 3, 3, 6, runtime.cudaArrayCubemap)
    with pytest.raises(NotImplementedError, match="Mipmapped"):
        ResourceDescriptor(runtime.cudaResourceTypeMipmappedArray)
    with pytest.raises(TypeError, match="cuArr must be a CUDAarray, not NoneType"):
        ResourceDescriptor(runtime.cudaResourceTypeArray)
    with pytest.raises(ValueError, match="addressModes must be at most 3"):
        TextureDescriptor((0, 0, 0, 0))
    with pytest.raises(runtime.CUDARuntimeError, match="cudaFilterModeLinear of elements of uint8"):
        texture_of(np.zeros(3, "uint8"), (CLAMP,), 1)
    with pytest.raises(runtime.CUDARuntimeError, match="cudaFilterModeLinear of elements of int32"):
        texture_of(np.zeros(3, "int32"), (CLAMP,), 1, 1)
    with pytest.raises(runtime.CUDARuntimeError, match="must be the numbers"):
        texture_of(np.zeros(3, "uint8"), (7,))
    with pytest.raises(runtime.CUDARuntimeError, match="flag cudaArraySurfaceLoadStore"):
        surface_of(CUDAarray(whole, 3))


@pytest.mark.parametrize("sizes", [{"sizeInBytes": 41}, {"sizeInBytes": 3}, {"width": 3, "height": 3, "pitchInBytes": 16},
                                   {"width": 5, "height": 2, "pitchInBytes": 16}, {"width": 3, "height": 0}])
def test_what_is_not_within_an_array(sizes):
    kind = runtime.cudaResourceTypePitch2D if "width" in sizes else runtime.cudaResourceTypeLinear
    resource = ResourceDescriptor(kind, arr=ad.zeros(10, "float32"), chDesc=channels_of("float32"), **sizes)
    if sizes == {"sizeInBytes": 41}:  # whole elements
        TextureObject(resource, TextureDescriptor())
        resource = ResourceDescriptor(kind, arr=ad.zeros(9, "float32"), chDesc=channels_of("float32"), sizeInBytes=40)
    with pytest.raises(runtime.CUDARuntimeError, match="must lie within|must be elements"):
        TextureObject(resource, TextureDescriptor())


def test_what_there_is_not():
    source = 'extern "C" __global__ void k(float4 *x, cudaTextureObject_t t) { *x = tex2Dgather<float4>(t, 0, 0); }'
    with pytest.raises(ad.CompileError, match="there_is_no_tex2Dgather"):
        ad.RawKernel(source, "k").compile()
