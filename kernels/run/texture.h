/* Textures and surfaces by CUDA's names, for sources on both backends: they are sampled by the kernel's own
 * instructions.
 *
 * An object is the address of a `picture`, which says where its elements lie behind it and how they are read: the
 * client writes it (arrayd/cuda/texture.py has the same fields). No coordinate leads out of the elements. */
#ifndef AD_RUN_TEXTURE_H
#define AD_RUN_TEXTURE_H

#ifdef __ARRAYD_HOST__
typedef unsigned long long cudaTextureObject_t;
typedef unsigned long long cudaSurfaceObject_t;
enum cudaSurfaceBoundaryMode { cudaBoundaryModeZero, cudaBoundaryModeClamp, cudaBoundaryModeTrap };
#endif

namespace ad_texture {

enum kind { SIGNED, UNSIGNED, REAL };
enum address { WRAP, CLAMP, MIRROR, BORDER };

struct picture {
    long long begin, row, plane; /* bytes from here to the first element; between rows; between planes */
    int width, height, depth;    /* of layers: how many there are */
    unsigned char channels, bytes, kind, linear, relative, scaled, srgb, address[3], unused[2];
    float border[4];
};

/* A type that kernels read: how many channels it has, and of which type. */
template <class T> struct texel;
#define AD_TEXEL(type, base, n)         \
    template <> struct texel<type> {    \
        typedef base part;              \
        static constexpr int count = n; \
    };
#define AD_TEXEL_ALL(name, base) \
    AD_TEXEL(base, base, 1)      \
    AD_TEXEL(name##1, base, 1)   \
    AD_TEXEL(name##2, base, 2)   \
    AD_TEXEL(name##4, base, 4)
AD_TEXEL_ALL(char, signed char)
AD_TEXEL_ALL(uchar, unsigned char)
AD_TEXEL_ALL(short, short)
AD_TEXEL_ALL(ushort, unsigned short)
AD_TEXEL_ALL(int, int)
AD_TEXEL_ALL(uint, unsigned int)
AD_TEXEL_ALL(float, float)
AD_TEXEL(char, signed char, 1)
#undef AD_TEXEL_ALL
#undef AD_TEXEL

template <class T> struct is_real { static constexpr bool value = false; };
template <> struct is_real<float> { static constexpr bool value = true; };

static inline __device__ const picture *picture_of(unsigned long long object) { return (const picture *)object; }

/* ---- one channel of an element ---- */

static inline __device__ float bits_as_float(unsigned bits) {
    union {
        unsigned bits;
        float value;
    } u;
    u.bits = bits;
    return u.value;
}

static inline __device__ float half_value(unsigned short h) {
    const unsigned exponent = (h >> 10) & 31, fraction = h & 1023;
    const float plain = exponent == 0 ? (float)fraction * 5.9604644775390625e-8f /* 2 to the -24th */
                                      : bits_as_float((exponent == 31 ? 255u : exponent + 112u) << 23 | fraction << 13);
    return h & 0x8000 ? -plain : plain;
}

static inline __device__ long long whole_value(const picture *p, const char *at) {
    if (p->bytes == 1) return p->kind == SIGNED ? *(const signed char *)at : (long long)*(const unsigned char *)at;
    if (p->bytes == 2) return p->kind == SIGNED ? *(const short *)at : (long long)*(const unsigned short *)at;
    return p->kind == SIGNED ? *(const int *)at : (long long)*(const unsigned *)at;
}

/* An integer of 8 or 16 bits as a number from 0, or -1, to 1. */
static inline __device__ float scaled_value(const picture *p, const char *at, int channel) {
    const bool negative = p->kind == SIGNED;
    const float most = p->bytes == 1 ? (negative ? 127.0f : 255.0f) : (negative ? 32767.0f : 65535.0f);
    const float value = fmaxf((float)whole_value(p, at) / most, -1.0f);
    if (!p->srgb || p->bytes != 1 || negative || channel == 3) return value;
    return value <= 0.04045f ? value / 12.92f : powf((value + 0.055f) / 1.055f, 2.4f);
}

template <bool Real> struct channel_of; /* read as float, or as an integer */
template <> struct channel_of<true> {
    static __device__ float read_channel(const picture *p, const char *at, int channel) {
        if (p->kind == REAL) return p->bytes == 4 ? *(const float *)at : half_value(*(const unsigned short *)at);
        return p->scaled && p->bytes < 4 ? scaled_value(p, at, channel) : (float)whole_value(p, at);
    }
};
template <> struct channel_of<false> {
    static __device__ long long read_channel(const picture *p, const char *at, int channel) {
        return p->kind == REAL ? (long long)channel_of<true>::read_channel(p, at, channel) : whole_value(p, at);
    }
};

/* ---- coordinates ---- */

/* The elements along an axis that a coordinate means: the second weighs `weight`. -1: the border. */
struct place {
    int first, second;
    float weight;
};

static inline __device__ int find_index(long long i, int n, int mode) {
    if (i >= 0 && i < n) return (int)i;
    if (mode == BORDER) return -1;
    if (mode == CLAMP) return i < 0 ? 0 : n - 1;
    const long long period = mode == WRAP ? n : 2 * (long long)n;
    i %= period;
    if (i < 0) i += period;
    return (int)(i < n ? i : period - 1 - i);
}

/* Make a coordinate that is not a number, or is far away, one that an integer can hold. */
static inline __device__ float bound_coordinate(float x) { return fminf(fmaxf(x, -1e9f), 1e9f); }

/* Find the place of a coordinate among n elements. Weights have 8 bits behind the point. */
static inline __device__ place find_place(const picture *p, float x, int n, int axis) {
    int mode = p->address[axis];
    if (p->relative) {
        if (mode == WRAP) x -= floorf(x);
        if (mode == MIRROR) x -= 2.0f * floorf(0.5f * x);
        x *= (float)n;
    } else if (mode == WRAP || mode == MIRROR) mode = CLAMP;
    place found = {0, 0, 0.0f};
    if (!p->linear) {
        found.first = found.second = find_index((long long)floorf(bound_coordinate(x)), n, mode);
        return found;
    }
    x = bound_coordinate(x - 0.5f);
    const float low = floorf(x);
    found.first = find_index((long long)low, n, mode);
    found.second = find_index((long long)low + 1, n, mode);
    found.weight = floorf((x - low) * 256.0f + 0.5f) / 256.0f;
    return found;
}

static inline __device__ place make_place(int i) {
    const place found = {i, i, 0.0f};
    return found;
}

/* ---- fetching ---- */

/* An element's channel; the border's where an index is -1. */
template <class S> static inline __device__ S channel_at(const picture *p, int x, int y, int z, int channel) {
    if (x < 0 || y < 0 || z < 0) return (S)p->border[channel];
    if (channel >= p->channels) return (S)0;
    const long long offset = p->begin + z * p->plane + y * p->row + ((long long)x * p->channels + channel) * p->bytes;
    return (S)channel_of<is_real<S>::value>::read_channel(p, (const char *)p + offset, channel);
}

static inline __device__ float mix_values(float a, float b, float weight) { return (1.0f - weight) * a + weight * b; }

/* Linear filtering, along as many axes as lie between two elements. */
static inline __device__ float filter_channel(const picture *p, const place &x, const place &y, const place &z,
                                              int channel) {
    float plane[2] = {0, 0};
    for (int k = 0; k < (z.weight > 0 ? 2 : 1); k++) {
        const int at = k ? z.second : z.first;
        float row[2] = {0, 0};
        for (int j = 0; j < (y.weight > 0 ? 2 : 1); j++) {
            const int line = j ? y.second : y.first;
            const float one = channel_at<float>(p, x.first, line, at, channel);
            row[j] = x.weight > 0 ? mix_values(one, channel_at<float>(p, x.second, line, at, channel), x.weight) : one;
        }
        plane[k] = y.weight > 0 ? mix_values(row[0], row[1], y.weight) : row[0];
    }
    return z.weight > 0 ? mix_values(plane[0], plane[1], z.weight) : plane[0];
}

template <class S, bool Real> struct sampler;
template <class S> struct sampler<S, true> {
    static __device__ S sample_channel(const picture *p, const place &x, const place &y, const place &z, int channel) {
        return filter_channel(p, x, y, z, channel);
    }
};
template <class S> struct sampler<S, false> {
    static __device__ S sample_channel(const picture *p, const place &x, const place &y, const place &z, int channel) {
        return channel_at<S>(p, x.first, y.first, z.first, channel);
    }
};

template <class T> static inline __device__ T sample(const picture *p, const place &x, const place &y, const place &z) {
    typedef typename texel<T>::part part;
    T out;
    part *to = (part *)&out;
    for (int c = 0; c < texel<T>::count; c++)
        to[c] = sampler<part, is_real<part>::value>::sample_channel(p, x, y, z, c);
    return out;
}

#define AD_PLAIN(...) __VA_ARGS__
/* A function that returns what it has fetched, and one that puts it behind a pointer. */
#define AD_TEXTURE(name, parameters, x, y, z)                                                                       \
    template <class T> static inline __device__ T name(cudaTextureObject_t object, AD_PLAIN parameters) {           \
        const picture *p = picture_of(object);                                                                      \
        return sample<T>(p, x, y, z);                                                                               \
    }                                                                                                               \
    template <class T> static inline __device__ void name(T *to, cudaTextureObject_t object, AD_PLAIN parameters) { \
        const picture *p = picture_of(object);                                                                      \
        *to = sample<T>(p, x, y, z);                                                                                \
    }
#define AD_X find_place(p, x, p->width, 0)
#define AD_Y find_place(p, y, p->height, 1)
#define AD_Z find_place(p, z, p->depth, 2)
#define AD_LAYER make_place(find_index(layer, p->depth, CLAMP))
AD_TEXTURE(tex1Dfetch, (int x), make_place(find_index(x, p->width, BORDER)), make_place(0), make_place(0))
AD_TEXTURE(tex1D, (float x), AD_X, make_place(0), make_place(0))
AD_TEXTURE(tex2D, (float x, float y), AD_X, AD_Y, make_place(0))
AD_TEXTURE(tex3D, (float x, float y, float z), AD_X, AD_Y, AD_Z)
AD_TEXTURE(tex2DLayered, (float x, float y, int layer), AD_X, AD_Y, AD_LAYER)
/* There is one level. */
AD_TEXTURE(tex1DLod, (float x, float), AD_X, make_place(0), make_place(0))
AD_TEXTURE(tex2DLod, (float x, float y, float), AD_X, AD_Y, make_place(0))
AD_TEXTURE(tex3DLod, (float x, float y, float z, float), AD_X, AD_Y, AD_Z)
#undef AD_LAYER
#undef AD_Z
#undef AD_Y
#undef AD_X
#undef AD_TEXTURE

/* ---- surfaces ---- */

/* Find `size` bytes of an element, x bytes from the row's begin. NULL: they are outside, and the mode says zero. */
static inline __device__ char *find_element(const picture *p, int x, int y, int z, int size,
                                            cudaSurfaceBoundaryMode mode) {
    const int one = p->channels * p->bytes, last = one * p->width - size;
    const bool out = x < 0 || x > last || x % size || y < 0 || y >= p->height || z < 0 || z >= p->depth || size > one;
    if (out && mode == cudaBoundaryModeTrap) __trap();
    if (out && (mode != cudaBoundaryModeClamp || size > one)) return 0;
    x = (x < 0 ? 0 : x > last ? last : x) / size * size;
    return (char *)p + p->begin + find_index(z, p->depth, CLAMP) * p->plane + find_index(y, p->height, CLAMP) * p->row +
           x;
}

template <class T>
static inline __device__ T surface_read(cudaSurfaceObject_t object, int x, int y, int z, cudaSurfaceBoundaryMode mode) {
    const char *from = find_element(picture_of(object), x, y, z, (int)sizeof(T), mode);
    return from ? *(const T *)from : T();
}
template <class T> static inline __device__ void surface_write(T value, cudaSurfaceObject_t object, int x, int y, int z,
                                                               cudaSurfaceBoundaryMode mode) {
    char *to = find_element(picture_of(object), x, y, z, (int)sizeof(T), mode);
    if (to) *(T *)to = value;
}

#define AD_SURFACE(name, parameters, arguments)                                                                        \
    template <class T> static inline __device__ T name##read(cudaSurfaceObject_t object, AD_PLAIN parameters,          \
                                                             cudaSurfaceBoundaryMode mode = cudaBoundaryModeTrap) {    \
        return surface_read<T>(object, AD_PLAIN arguments, mode);                                                      \
    }                                                                                                                  \
    template <class T> static inline __device__ void name##read(                                                       \
        T *to, cudaSurfaceObject_t object, AD_PLAIN parameters, cudaSurfaceBoundaryMode mode = cudaBoundaryModeTrap) { \
        *to = surface_read<T>(object, AD_PLAIN arguments, mode);                                                       \
    }                                                                                                                  \
    template <class T>                                                                                                 \
    static inline __device__ void name##write(T value, cudaSurfaceObject_t object, AD_PLAIN parameters,                \
                                              cudaSurfaceBoundaryMode mode = cudaBoundaryModeTrap) {                   \
        surface_write<T>(value, object, AD_PLAIN arguments, mode);                                                     \
    }
AD_SURFACE(surf1D, (int x), (x, 0, 0))
AD_SURFACE(surf2D, (int x, int y), (x, y, 0))
AD_SURFACE(surf3D, (int x, int y, int z), (x, y, z))
AD_SURFACE(surf2DLayered, (int x, int y, int layer), (x, y, layer))
#undef AD_SURFACE
#undef AD_PLAIN

} // namespace ad_texture

/* NVRTC has functions of these names, for objects of CUDA's runtime. */
#define tex1Dfetch ::ad_texture::tex1Dfetch
#define tex1D ::ad_texture::tex1D
#define tex2D ::ad_texture::tex2D
#define tex3D ::ad_texture::tex3D
#define tex2DLayered ::ad_texture::tex2DLayered
#define tex1DLod ::ad_texture::tex1DLod
#define tex2DLod ::ad_texture::tex2DLod
#define tex3DLod ::ad_texture::tex3DLod
#define surf1Dread ::ad_texture::surf1Dread
#define surf1Dwrite ::ad_texture::surf1Dwrite
#define surf2Dread ::ad_texture::surf2Dread
#define surf2Dwrite ::ad_texture::surf2Dwrite
#define surf3Dread ::ad_texture::surf3Dread
#define surf3Dwrite ::ad_texture::surf3Dwrite
#define surf2DLayeredread ::ad_texture::surf2DLayeredread
#define surf2DLayeredwrite ::ad_texture::surf2DLayeredwrite
/* The others would take an object for one of CUDA's: sources that name them are not compiled. */
#define tex1DLayered ::ad_texture::there_is_no_tex1DLayered
#define tex1DGrad ::ad_texture::there_is_no_tex1DGrad
#define tex2DGrad ::ad_texture::there_is_no_tex2DGrad
#define tex3DGrad ::ad_texture::there_is_no_tex3DGrad
#define tex1DLayeredLod ::ad_texture::there_is_no_tex1DLayeredLod
#define tex2DLayeredLod ::ad_texture::there_is_no_tex2DLayeredLod
#define tex1DLayeredGrad ::ad_texture::there_is_no_tex1DLayeredGrad
#define tex2DLayeredGrad ::ad_texture::there_is_no_tex2DLayeredGrad
#define tex2Dgather ::ad_texture::there_is_no_tex2Dgather
#define texCubemap ::ad_texture::there_is_no_texCubemap
#define texCubemapLod ::ad_texture::there_is_no_texCubemapLod
#define texCubemapLayered ::ad_texture::there_is_no_texCubemapLayered
#define texCubemapLayeredLod ::ad_texture::there_is_no_texCubemapLayeredLod
#define surf1DLayeredread ::ad_texture::there_is_no_surf1DLayeredread
#define surf1DLayeredwrite ::ad_texture::there_is_no_surf1DLayeredwrite
#define surfCubemapread ::ad_texture::there_is_no_surfCubemapread
#define surfCubemapwrite ::ad_texture::there_is_no_surfCubemapwrite
#define surfCubemapLayeredread ::ad_texture::there_is_no_surfCubemapLayeredread
#define surfCubemapLayeredwrite ::ad_texture::there_is_no_surfCubemapLayeredwrite

#endif
