/* CUDA C++ for the host's compiler: what a source for a GPU may take for granted. It follows abi.h, stands before the
 * user's source, and includes nothing. */

#pragma GCC system_header /* warnings are of the user's lines */

typedef decltype(sizeof 0) size_t;
typedef decltype(static_cast<char *>(nullptr) - static_cast<char *>(nullptr)) ptrdiff_t;

#define __ARRAYD_HOST__ 1
#define __CUDACC__ 1
#define __CUDACC_RTC__ 1
#define __CUDA_ARCH__ 900
#define __global__
#define __device__
#define __host__
#define __constant__
#define __managed__
#define __grid_constant__
#define __shared__ static thread_local
#define __forceinline__ inline __attribute__((always_inline))
#define __noinline__ __attribute__((noinline))
#define __align__(n) __attribute__((aligned(n)))
#define __launch_bounds__(...)
#define __maxnreg__(...)
#define __cluster_dims__(...)
#define __builtin_assume(x) ((void)0)

#define NULL nullptr
#ifndef INFINITY
#define INFINITY __builtin_inff()
#define NAN __builtin_nanf("")
#define HUGE_VAL __builtin_huge_val()
#endif
#define M_E 2.7182818284590452354
#define M_PI 3.14159265358979323846
#define M_PI_2 1.57079632679489661923
#define M_PI_4 0.78539816339744830962
#define M_SQRT2 1.41421356237309504880

/* ---- where a thread is ---- */

struct dim3 {
    unsigned x, y, z;
    constexpr dim3(unsigned a = 1, unsigned b = 1, unsigned c = 1) : x(a), y(b), z(c) {}
    constexpr dim3(uint3 v) : x(v.x), y(v.y), z(v.z) {}
    operator uint3() const { return uint3{x, y, z}; }
};

namespace adrun {
static thread_local block *self;
inline dim3 dim_of(const uint3 &v) { return dim3(v.x, v.y, v.z); }
} // namespace adrun
#define threadIdx (static_cast<const uint3 &>(adrun::self->thread))
#define blockIdx (static_cast<const uint3 &>(adrun::self->index))
#define blockDim (adrun::dim_of(adrun::self->threads))
#define gridDim (adrun::dim_of(adrun::self->blocks))
static const int warpSize = 32;

/* ---- entries ---- */

/* The modules's, found by this name. */
extern "C" {
__attribute__((visibility("default"))) adrun::entry *ad_entries = nullptr;
}

namespace adrun {

template <int... I> struct numbers {};
template <int N, int... I> struct numbers_to : numbers_to<N - 1, N - 1, I...> {};
template <int... I> struct numbers_to<0, I...> { typedef numbers<I...> type; };

inline void *dynamic() { return self->dynamic; }

/* The next thread begins. */
inline void begin(block *b) {
    const unsigned n = b->next++, plane = b->threads.x * b->threads.y;
    b->current = n;
    b->thread.z = n / plane;
    b->thread.y = (n - b->thread.z * plane) / b->threads.x;
    b->thread.x = n % b->threads.x;
}

template <class F> struct caller;
template <class... A> struct caller<void (*)(A...)> {
    static constexpr int count = sizeof...(A);
    static constexpr unsigned sizes[sizeof...(A) + 1] = {sizeof(A)..., 0};
    template <void (*f)(A...), int... I> static void call(void *const *argument, numbers<I...>) {
        (void)argument;
        f(*static_cast<A *>(argument[I])...);
    }
    template <void (*f)(A...)> static void run(void *const *argument, block *b) {
        self = b;
        while (b->next < b->count) {
            begin(b);
            asm volatile("" ::: "memory"); /* written by now: a fault's message says which thread it was */
            call<f>(argument, typename numbers_to<sizeof...(A)>::type());
            b->done[b->current] = 1;
        }
    }
    template <void (*f)(A...)> static entry make(const char *name) {
        return entry{name, run<f>, sizes, count, nullptr, 0, nullptr};
    }
};
template <class... A> constexpr unsigned caller<void (*)(A...)>::sizes[];
/* Variables. */
template <class T> struct caller<T *> {
    template <T *p> static entry make(const char *name) {
        return entry{name,      nullptr, nullptr, 0, const_cast<void *>(static_cast<const volatile void *>(p)),
                     sizeof(T), nullptr};
    }
};

struct registered {
    entry e;
    registered(const entry &made) : e(made) {
        e.next = ad_entries;
        ad_entries = &e;
    }
};

} // namespace adrun

/* ---- waiting for other threads ---- */

namespace adrun {

inline unsigned long long wait(wait_for what, unsigned mask, unsigned long long value, int other) {
    asm volatile("" ::: "memory");
    const unsigned long long result = self->wait(self, what, mask, value, other);
    asm volatile("" ::: "memory");
    return result;
}
inline int lane() { return int(self->current % 32); }
template <class T> inline unsigned long long bits_of(T v) {
    static_assert(sizeof(T) <= 8, "a value that is shuffled or matched has at most 8 bytes");
    unsigned long long bits = 0;
    __builtin_memcpy(&bits, &v, sizeof v);
    return bits;
}
template <class T> inline T value_of(unsigned long long bits) {
    T v;
    __builtin_memcpy(&v, &bits, sizeof v);
    return v;
}
template <class T> inline T shuffle(unsigned mask, T v, int from) {
    return value_of<T>(wait(WAIT_SHUFFLE, mask, bits_of(v), from));
}

} // namespace adrun

inline void __syncthreads() { adrun::wait(adrun::WAIT_BLOCK, 0, 0, 0); }
inline int __syncthreads_count(int p) { return int(adrun::wait(adrun::WAIT_BLOCK, 0, p != 0, 0) & 0xffffffffu); }
inline int __syncthreads_or(int p) { return __syncthreads_count(p) != 0; }
inline int __syncthreads_and(int p) {
    const unsigned long long r = adrun::wait(adrun::WAIT_BLOCK, 0, p != 0, 0);
    return unsigned(r) == unsigned(r >> 32);
}
inline void __syncwarp(unsigned mask = 0xffffffffu) { adrun::wait(adrun::WAIT_WARP, mask, 0, 0); }
inline unsigned __activemask() { return unsigned(adrun::wait(adrun::WAIT_ACTIVE, 0, 0, 0)); }
inline unsigned __ballot_sync(unsigned mask, int p) { return unsigned(adrun::wait(adrun::WAIT_VOTE, mask, p != 0, 0)); }
inline int __any_sync(unsigned mask, int p) { return __ballot_sync(mask, p) != 0; }
inline int __all_sync(unsigned mask, int p) {
    const unsigned long long r = adrun::wait(adrun::WAIT_VOTE, mask, p != 0, 0);
    return unsigned(r) == unsigned(r >> 32);
}
inline int __uni_sync(unsigned mask, int p) {
    const unsigned long long r = adrun::wait(adrun::WAIT_VOTE, mask, p != 0, 0);
    return unsigned(r) == 0 || unsigned(r) == unsigned(r >> 32);
}
template <class T> inline T __shfl_sync(unsigned mask, T v, int from, int width = 32) {
    return adrun::shuffle(mask, v, (adrun::lane() & ~(width - 1)) | (from & (width - 1)));
}
template <class T> inline T __shfl_up_sync(unsigned mask, T v, unsigned delta, int width = 32) {
    const int me = adrun::lane(), from = me - int(delta);
    return adrun::shuffle(mask, v, from < (me & ~(width - 1)) ? me : from);
}
template <class T> inline T __shfl_down_sync(unsigned mask, T v, unsigned delta, int width = 32) {
    const int me = adrun::lane(), from = me + int(delta);
    return adrun::shuffle(mask, v, from > (me | (width - 1)) ? me : from);
}
template <class T> inline T __shfl_xor_sync(unsigned mask, T v, int bits, int width = 32) {
    const int me = adrun::lane(), from = me ^ bits;
    return adrun::shuffle(mask, v, from > (me | (width - 1)) ? me : from);
}
template <class T> inline unsigned __match_any_sync(unsigned mask, T v) {
    return unsigned(adrun::wait(adrun::WAIT_MATCH, mask, adrun::bits_of(v), 0));
}
template <class T> inline unsigned __match_all_sync(unsigned mask, T v, int *all) {
    const unsigned long long r = adrun::wait(adrun::WAIT_MATCH, mask, adrun::bits_of(v), 0);
    *all = unsigned(r) == unsigned(r >> 32);
    return *all ? unsigned(r) : 0;
}
#define AD_RUN_REDUCE(name, type, with)                                                               \
    inline type __reduce_##name##_sync(unsigned mask, type v) {                                       \
        return adrun::value_of<type>(adrun::wait(adrun::WAIT_REDUCE, mask, adrun::bits_of(v), with)); \
    }
AD_RUN_REDUCE(add, unsigned, adrun::REDUCE_ADD)
AD_RUN_REDUCE(add, int, adrun::REDUCE_ADD)
AD_RUN_REDUCE(min, unsigned, adrun::REDUCE_UMIN)
AD_RUN_REDUCE(min, int, adrun::REDUCE_MIN)
AD_RUN_REDUCE(max, unsigned, adrun::REDUCE_UMAX)
AD_RUN_REDUCE(max, int, adrun::REDUCE_MAX)
AD_RUN_REDUCE(and, unsigned, adrun::REDUCE_AND)
AD_RUN_REDUCE(or, unsigned, adrun::REDUCE_OR)
AD_RUN_REDUCE(xor, unsigned, adrun::REDUCE_XOR)
#undef AD_RUN_REDUCE

inline void __threadfence() { __atomic_thread_fence(__ATOMIC_SEQ_CST); }
inline void __threadfence_block() { __atomic_thread_fence(__ATOMIC_SEQ_CST); }
inline void __threadfence_system() { __atomic_thread_fence(__ATOMIC_SEQ_CST); }
inline void __nanosleep(unsigned) {}
[[noreturn]] inline void __trap() {
    adrun::self->fail(adrun::self, "__trap()");
    __builtin_unreachable();
}
inline void __brkpt() {}
#define AD_RUN_TEXT_OF(x) #x
#define AD_RUN_TEXT(x) AD_RUN_TEXT_OF(x)
#ifdef NDEBUG
#define assert(x) ((void)0)
#else
#define assert(x) \
    ((x) ? (void)0 : adrun::self->fail(adrun::self, "assertion failed in line " AD_RUN_TEXT(__LINE__) ": " #x))
#endif
#ifdef __x86_64__
inline long long clock64() { return (long long)__builtin_ia32_rdtsc(); }
#else
inline long long clock64() {
    static thread_local long long ticks; /* it grows, which is all that can be said */
    return ++ticks;
}
#endif
inline int clock() { return int(clock64()); }

/* ---- vectors ---- */

#define AD_RUN_VECTOR(base, type, align2, align4)                                             \
    struct base##1 {                                                                          \
        type x;                                                                               \
    };                                                                                        \
    struct __attribute__((aligned(align2))) base##2 {                                         \
        type x, y;                                                                            \
    };                                                                                        \
    AD_RUN_THREE_##base struct __attribute__((aligned(align4))) base##4 { type x, y, z, w; }; \
    inline base##1 make_##base##1(type x) { return base##1 {x}; }                             \
    inline base##2 make_##base##2(type x, type y) { return base##2 {x, y}; }                  \
    inline base##3 make_##base##3(type x, type y, type z) { return base##3 {x, y, z}; }       \
    inline base##4 make_##base##4(type x, type y, type z, type w) { return base##4 {x, y, z, w}; }
#define AD_RUN_THREE(base, type) \
    struct base##3 {             \
        type x, y, z;            \
    };
#define AD_RUN_THREE_char AD_RUN_THREE(char, signed char)
#define AD_RUN_THREE_uchar AD_RUN_THREE(uchar, unsigned char)
#define AD_RUN_THREE_short AD_RUN_THREE(short, short)
#define AD_RUN_THREE_ushort AD_RUN_THREE(ushort, unsigned short)
#define AD_RUN_THREE_int AD_RUN_THREE(int, int)
#define AD_RUN_THREE_uint
#define AD_RUN_THREE_long AD_RUN_THREE(long, long)
#define AD_RUN_THREE_ulong AD_RUN_THREE(ulong, unsigned long)
#define AD_RUN_THREE_longlong AD_RUN_THREE(longlong, long long)
#define AD_RUN_THREE_ulonglong AD_RUN_THREE(ulonglong, unsigned long long)
#define AD_RUN_THREE_float AD_RUN_THREE(float, float)
#define AD_RUN_THREE_double AD_RUN_THREE(double, double)
AD_RUN_VECTOR(char, signed char, 2, 4)
AD_RUN_VECTOR(uchar, unsigned char, 2, 4)
AD_RUN_VECTOR(short, short, 4, 8)
AD_RUN_VECTOR(ushort, unsigned short, 4, 8)
AD_RUN_VECTOR(int, int, 8, 16)
AD_RUN_VECTOR(uint, unsigned, 8, 16)
AD_RUN_VECTOR(long, long, 16, 16)
AD_RUN_VECTOR(ulong, unsigned long, 16, 16)
AD_RUN_VECTOR(longlong, long long, 16, 16)
AD_RUN_VECTOR(ulonglong, unsigned long long, 16, 16)
AD_RUN_VECTOR(float, float, 8, 16)
AD_RUN_VECTOR(double, double, 16, 16)
