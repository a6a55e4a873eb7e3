/* cuda/std/mdspan for the host: views of several dimensions. They lie in memory as CUDA's do, because kernels take
 * them as arguments. This part of the header is for arrays of elements: it has no submdspan, and no accessors but the
 * default. */
#ifndef AD_RUN_MDSPAN_H
#define AD_RUN_MDSPAN_H

#include <array>
#include <type_traits>
#include <utility>

namespace cuda {
namespace std {
using namespace ::std;

constexpr size_t dynamic_extent = size_t(-1);

/* Sizes of the dimensions, of which those that are not known to the compiler are kept. */
template <class I, size_t... E> class extents {
    static constexpr size_t known[sizeof...(E) + 1] = {E..., 0};
    static constexpr size_t count_dynamic(size_t n) {
        size_t found = 0;
        for (size_t d = 0; d < n; d++) found += known[d] == dynamic_extent;
        return found;
    }
    struct none {};
    struct some {
        I at[count_dynamic(sizeof...(E)) + (count_dynamic(sizeof...(E)) == 0)];
    };
    static constexpr bool any = count_dynamic(sizeof...(E)) != 0;
    [[no_unique_address]] conditional_t<any, some, none> sizes;

  public:
    using index_type = I;
    using size_type = make_unsigned_t<I>;
    using rank_type = size_t;

    constexpr extents() : sizes() {}
    template <class... N, enable_if_t<sizeof...(N) == count_dynamic(sizeof...(E)) && sizeof...(N) != 0, int> = 0>
    explicit constexpr extents(N... n) : sizes{{I(n)...}} {}
    static constexpr size_t rank() { return sizeof...(E); }
    static constexpr size_t rank_dynamic() { return count_dynamic(sizeof...(E)); }
    static constexpr size_t static_extent(size_t d) { return known[d]; }
    constexpr I extent(size_t d) const {
        if constexpr (any)
            if (known[d] == dynamic_extent) return sizes.at[count_dynamic(d)];
        return I(known[d]);
    }
};

template <class I, class S> struct ad_dextents;
template <class I, size_t... D> struct ad_dextents<I, index_sequence<D...>> {
    using type = extents<I, (D, dynamic_extent)...>;
};
template <class I, size_t R> using dextents = typename ad_dextents<I, make_index_sequence<R>>::type;

/* The last index moves by one element (RIGHT), or the first does. */
template <class E, bool RIGHT> class ad_packed_mapping {
    [[no_unique_address]] E sizes;

  public:
    using extents_type = E;
    using index_type = typename E::index_type;
    constexpr ad_packed_mapping() = default;
    constexpr ad_packed_mapping(const E &e) : sizes(e) {}
    constexpr const E &extents() const { return sizes; }
    constexpr index_type stride(size_t d) const {
        index_type n = 1;
        for (size_t k = RIGHT ? d + 1 : 0; k < (RIGHT ? E::rank() : d); k++) n *= sizes.extent(k);
        return n;
    }
};

struct layout_right {
    template <class E> using mapping = ad_packed_mapping<E, true>;
};
struct layout_left {
    template <class E> using mapping = ad_packed_mapping<E, false>;
};
struct layout_stride {
    template <class E> class mapping {
        struct none {};
        using some = array<typename E::index_type, E::rank() + (E::rank() == 0)>;
        [[no_unique_address]] E sizes;
        [[no_unique_address]] conditional_t<E::rank() != 0, some, none> steps;

      public:
        using extents_type = E;
        using index_type = typename E::index_type;
        constexpr mapping() = default;
        template <class S> constexpr mapping(const E &e, const array<S, E::rank()> &s) : sizes(e), steps() {
            if constexpr (E::rank() != 0)
                for (size_t d = 0; d < E::rank(); d++) steps[d] = index_type(s[d]);
        }
        constexpr const E &extents() const { return sizes; }
        constexpr index_type stride(size_t d) const {
            if constexpr (E::rank() != 0) return steps[d];
            return 0;
        }
    };
};

template <class T> struct default_accessor {
    using element_type = T;
    using reference = T &;
    using data_handle_type = T *;
};

template <class T, class E, class L = layout_right, class A = default_accessor<T>> class mdspan {
    T *data;
    [[no_unique_address]] typename L::template mapping<E> map;

  public:
    using element_type = T;
    using value_type = remove_cv_t<T>;
    using extents_type = E;
    using layout_type = L;
    using accessor_type = A;
    using mapping_type = typename L::template mapping<E>;
    using index_type = typename E::index_type;
    using size_type = typename E::size_type;
    using rank_type = size_t;
    using reference = T &;
    using data_handle_type = T *;

    constexpr mdspan() = default;
    constexpr mdspan(T *p, const mapping_type &m) : data(p), map(m) {}
    template <class... N, enable_if_t<sizeof...(N) == E::rank_dynamic(), int> = 0>
    explicit constexpr mdspan(T *p, N... n) : data(p), map(E(n...)) {}

    static constexpr size_t rank() { return E::rank(); }
    static constexpr size_t rank_dynamic() { return E::rank_dynamic(); }
    static constexpr size_t static_extent(size_t d) { return E::static_extent(d); }
    constexpr const E &extents() const { return map.extents(); }
    constexpr index_type extent(size_t d) const { return extents().extent(d); }
    constexpr index_type stride(size_t d) const { return map.stride(d); }
    constexpr const mapping_type &mapping() const { return map; }
    constexpr T *data_handle() const { return data; }
    constexpr size_type size() const {
        size_type n = 1;
        for (size_t d = 0; d < rank(); d++) n *= size_type(extent(d));
        return n;
    }
    constexpr bool empty() const { return size() == 0; }
    template <class... I> constexpr T &operator()(I... i) const {
        static_assert(sizeof...(I) == E::rank(), "an mdspan takes an index for each dimension");
        const index_type index[sizeof...(I) + 1] = {index_type(i)..., 0};
        index_type place = 0;
        for (size_t d = 0; d < rank(); d++) place += index[d] * map.stride(d);
        return data[place];
    }
    template <class I> constexpr T &operator[](const array<I, E::rank()> &index) const {
        index_type place = 0;
        for (size_t d = 0; d < rank(); d++) place += index_type(index[d]) * map.stride(d);
        return data[place];
    }
};

} // namespace std
} // namespace cuda
#endif
