/* Arrays and indices as kernels that are made of pieces of C++ get them, by cupy/carray.cuh's names. Plain structures
 * of 64-bit integers are passed by value: dims. */
#ifndef AD_RUN_CARRAY_H
#define AD_RUN_CARRAY_H

#include <cupy/float16.cuh>

/* Of std's traits those that cupy's header has under a name of its own. */
namespace cupy {
namespace type_traits {
template <bool B, class T, class F> struct conditional { typedef T type; };
template <class T, class F> struct conditional<false, T, F> { typedef F type; };
template <bool B, class T = void> struct enable_if {};
template <class T> struct enable_if<true, T> { typedef T type; };
template <class T, class U> struct is_same { static const bool value = false; };
template <class T> struct is_same<T, T> { static const bool value = true; };
} // namespace type_traits
} // namespace cupy

namespace ad_kernel {
template <int N> struct dims { long long at[N ? N : 1]; };

/* A position in a shape, found from a position in C order. */
template <int N> struct indexer {
    enum { ndim = N };
    ptrdiff_t size_, shape_[N ? N : 1], index_[N ? N : 1];
    __device__ explicit indexer(const dims<N> &shape) : size_(1) {
        for (int d = 0; d < N; d++) size_ *= shape_[d] = shape.at[d];
        for (int d = 0; d < (N ? N : 1); d++) index_[d] = 0;
    }
    __device__ ptrdiff_t size() const { return size_; }
    __device__ const ptrdiff_t *shape() const { return shape_; }
    __device__ const ptrdiff_t (&get() const)[N ? N : 1] { return index_; }
    __device__ void set(ptrdiff_t i) {
        if (size_ <= 0x7fffffff) split<unsigned int>((unsigned int)i); // division of 64 bits is slow
        else split<unsigned long long>(i);
    }
    template <class I> __device__ void split(I i) {
        for (int d = N - 1; d > 0; d--) {
            I n = (I)shape_[d], q = i / n;
            index_[d] = i - q * n;
            i = q;
        }
        if (N) index_[0] = i;
    }
    __device__ ptrdiff_t offset(const dims<N> &strides) const {
        ptrdiff_t sum = 0;
        for (int d = 0; d < N; d++) sum += index_[d] * strides.at[d];
        return sum;
    }
};

/* Memory that threads of a block share, without constructors. */
template <int N, int A = 16> struct alignas(A) shared_bytes { unsigned char at[N]; };

template <class T> __device__ T &at(T *data, ptrdiff_t offset) { return *(T *)((char *)data + offset); }
} // namespace ad_kernel

/* An array with a shape. C: its elements lie in C order without gaps. Index32 is CuPy's, and changes nothing. */
template <class T, int N, bool C = true, bool Index32 = false> struct CArray {
    enum { ndim = N };
    T *data_;
    ptrdiff_t size_, shape_[N ? N : 1], strides_[N ? N : 1];
    CArray() = default;
    __device__ CArray(T *data, const ad_kernel::dims<N> &shape, const ad_kernel::dims<N> &strides)
        : data_(data), size_(1) {
        for (int d = 0; d < N; d++) {
            size_ *= shape_[d] = shape.at[d];
            strides_[d] = strides.at[d];
        }
    }
    /* In C order without gaps. */
    __device__ CArray(T *data, const ad_kernel::dims<N> &shape) : data_(data), size_(1) {
        for (int d = N - 1; d >= 0; d--) {
            strides_[d] = size_ * (ptrdiff_t)sizeof(T);
            size_ *= shape_[d] = shape.at[d];
        }
    }
    __device__ ptrdiff_t size() const { return size_; }
    __device__ const ptrdiff_t *shape() const { return shape_; }
    __device__ const ptrdiff_t *strides() const { return strides_; }
    __device__ const T &operator[](ptrdiff_t i) const {
        if (C) return data_[i];
        if (N == 1) return ad_kernel::at(data_, i * strides_[0]);
        ptrdiff_t offset = 0;
        for (int d = N - 1; d > 0; d--) {
            ptrdiff_t q = i / shape_[d];
            offset += (i - q * shape_[d]) * strides_[d];
            i = q;
        }
        return ad_kernel::at(data_, N ? offset + i * strides_[0] : 0);
    }
    template <class I, int M> __device__ const T &operator[](const I (&index)[M]) const {
        ptrdiff_t offset = 0;
        for (int d = 0; d < N; d++) offset += index[d] * strides_[d];
        return ad_kernel::at(data_, offset);
    }
    __device__ T &operator[](ptrdiff_t i) { return const_cast<T &>(static_cast<const CArray &>(*this)[i]); }
    template <class I, int M> __device__ T &operator[](const I (&index)[M]) {
        return const_cast<T &>(static_cast<const CArray &>(*this)[index]);
    }
};

namespace ad_kernel {
template <class T, int N, bool C> using array = CArray<T, N, C>;

/* The array that is left of one where its first indices are given. */
template <class T, int N, bool C, class... I>
__device__ array<T, N - (int)sizeof...(I), C> row(const array<T, N, C> &a, I... i) {
    enum { given = sizeof...(I) };
    const ptrdiff_t index[given] = {i...};
    array<T, N - given, C> left;
    ptrdiff_t offset = 0;
    for (int d = 0; d < given; d++) offset += index[d] * a.strides_[d];
    left.data_ = &at(a.data_, offset);
    left.size_ = 1;
    for (int d = given; d < N; d++) {
        left.size_ *= left.shape_[d - given] = a.shape_[d];
        left.strides_[d - given] = a.strides_[d];
    }
    return left;
}
template <class T, int N, bool C, class... I> __device__ T &item(const array<T, N, C> &a, I... i) {
    const ptrdiff_t index[sizeof...(i) ? sizeof...(i) : 1] = {i...};
    return const_cast<array<T, N, C> &>(a)[index];
}
} // namespace ad_kernel

template <int N, bool Index32 = false> using CIndexer = ad_kernel::indexer<N>;

#endif
