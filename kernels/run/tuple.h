/* thrust::tuple for sources of users, by cupy/tuple.cuh's name: as many values as are wanted, get, make_tuple, tie. */
#ifndef AD_RUN_TUPLE_H
#define AD_RUN_TUPLE_H

#define AD_TU __host__ __device__ inline

namespace thrust {

template <class... T> struct tuple;
template <> struct tuple<> {
    AD_TU bool operator==(const tuple &) const { return true; }
    AD_TU bool operator<(const tuple &) const { return false; }
};
template <class T, class... Rest> struct tuple<T, Rest...> {
    T first;
    tuple<Rest...> rest;

    tuple() = default;
    AD_TU tuple(const T &value, const Rest &...others) : first(value), rest(others...) {}
    template <class U, class... Others> AD_TU tuple(const tuple<U, Others...> &other)
        : first(other.first), rest(other.rest) {}
    template <class U, class... Others> AD_TU tuple &operator=(const tuple<U, Others...> &other) {
        first = other.first;
        rest = other.rest;
        return *this;
    }
    AD_TU bool operator==(const tuple &other) const { return first == other.first && rest == other.rest; }
    AD_TU bool operator!=(const tuple &other) const { return !(*this == other); }
    AD_TU bool operator<(const tuple &other) const {
        return first < other.first || (!(other.first < first) && rest < other.rest);
    }
};

template <int N, class Tuple> struct tuple_element;
template <class T, class... Rest> struct tuple_element<0, tuple<T, Rest...>> {
    typedef T type;
    static AD_TU T &of(tuple<T, Rest...> &t) { return t.first; }
    static AD_TU const T &of(const tuple<T, Rest...> &t) { return t.first; }
};
template <int N, class T, class... Rest> struct tuple_element<N, tuple<T, Rest...>> {
    typedef tuple_element<N - 1, tuple<Rest...>> below;
    typedef typename below::type type;
    static AD_TU type &of(tuple<T, Rest...> &t) { return below::of(t.rest); }
    static AD_TU const type &of(const tuple<T, Rest...> &t) { return below::of(t.rest); }
};
template <class Tuple> struct tuple_size;
template <class... T> struct tuple_size<tuple<T...>> {
    enum { value = sizeof...(T) };
};

template <int N, class... T> AD_TU typename tuple_element<N, tuple<T...>>::type &get(tuple<T...> &t) {
    return tuple_element<N, tuple<T...>>::of(t);
}
template <int N, class... T> AD_TU const typename tuple_element<N, tuple<T...>>::type &get(const tuple<T...> &t) {
    return tuple_element<N, tuple<T...>>::of(t);
}
template <class... T> AD_TU tuple<T...> make_tuple(const T &...values) { return tuple<T...>(values...); }

/* References that a tuple is assigned to. */
template <class... T> struct tied;
template <> struct tied<> {
    AD_TU void take(const tuple<> &) const {}
};
template <class T, class... Rest> struct tied<T, Rest...> {
    T &first;
    tied<Rest...> rest;
    AD_TU tied(T &value, Rest &...others) : first(value), rest(others...) {}
    template <class U, class... Others> AD_TU void take(const tuple<U, Others...> &t) const {
        first = t.first;
        rest.take(t.rest);
    }
    template <class... Others> AD_TU const tied &operator=(const tuple<Others...> &t) const {
        take(t);
        return *this;
    }
};
template <class... T> AD_TU tied<T...> tie(T &...places) { return tied<T...>(places...); }

} // namespace thrust

#undef AD_TU
#endif
