/* What the tests of calls share: arrays with any strides, and running a call as an engine would. */
#ifndef TEST_KERNELS_CALL_H
#define TEST_KERNELS_CALL_H

#include <criterion/criterion.h>
#include <memory>
#include <random>
#include <stdlib.h>
#include <string>
#include <vector>

#include "kernels/backend.h"
#include "kernels/types.h"
#include "protocol/rows_request.h"

typedef std::vector<int64_t> dims;

/* A view of elements of S. Copies share the elements. */
template <class S> struct nd {
    std::shared_ptr<std::vector<S>> elements;
    S *first;
    dims shape, stride; /* strides in elements */

    explicit nd(dims s)
        : elements(new std::vector<S>(), [](std::vector<S> *v) { delete v; }), shape(s), stride(s.size()) {
        int64_t n = 1;
        for (size_t i = s.size(); i-- > 0; n *= s[i]) stride[i] = n;
        elements->resize(size_t(n > 0 ? n : 1));
        first = elements->data();
    }
    int64_t size() const {
        int64_t n = 1;
        for (int64_t s : shape) n *= s;
        return n;
    }
    /* Element number i in row-major order. */
    S &operator[](int64_t i) const {
        S *p = first;
        for (size_t d = shape.size(); d-- > 0; i /= shape[d]) p += i % shape[d] * stride[d];
        return *p;
    }
    S &at(const dims &index) const {
        S *p = first;
        for (size_t d = 0; d < index.size(); d++) p += index[d] * stride[d];
        return *p;
    }
    nd swapped(size_t a, size_t b) const {
        nd r = *this;
        std::swap(r.shape[a], r.shape[b]);
        std::swap(r.stride[a], r.stride[b]);
        return r;
    }
    nd reversed(size_t axis) const {
        nd r = *this;
        if (shape[axis] > 0) r.first += (shape[axis] - 1) * stride[axis];
        r.stride[axis] = -stride[axis];
        return r;
    }
    nd every(size_t axis, int64_t step) const {
        nd r = *this;
        r.shape[axis] = (shape[axis] + step - 1) / step;
        r.stride[axis] = stride[axis] * step;
        return r;
    }
    nd repeated(size_t axis, int64_t n) const {
        nd r = *this;
        r.shape[axis] = n;
        r.stride[axis] = 0;
        return r;
    }
    nd copy() const {
        nd r(shape);
        for (int64_t i = 0; i < size(); i++) r[i] = (*this)[i];
        return r;
    }
};

/* Four layouts of one shape: row-major, column-major, reversed, with gaps. */
template <class S> nd<S> laid_out(const dims &shape, int layout) {
    dims s = shape;
    const size_t n = s.size();
    if (n == 0 || layout == 0) return nd<S>(s);
    if (layout == 1) {
        std::swap(s[0], s[n - 1]);
        return nd<S>(s).swapped(0, n - 1);
    }
    if (layout == 2) return nd<S>(s).reversed(n - 1).reversed(0);
    s[n - 1] *= 3;
    return nd<S>(s).every(n - 1, 3);
}

/* An operand with its own shape and strides. */
struct arg {
    ad_operand o = {};
    dims shape, strides;
    arg(const ad_scalar &s) {
        o.is_scalar = 1;
        o.scalar = s;
    }
    template <class S> arg(const nd<S> &a) : shape(a.shape), strides(a.stride) {
        for (int64_t &s : strides) s *= int64_t(sizeof(S));
        o.desc.dtype = ad::dtype_of<S>::value;
        o.desc.ndim = uint8_t(shape.size());
        o.data = a.first;
    }
    static arg sized(int dtype) {
        arg r{ad_scalar{}};
        r.o.is_scalar = 0;
        r.o.desc.dtype = uint8_t(dtype);
        r.o.desc.form = AD_SIZED;
        return r;
    }
};

inline ad_scalar integer(int64_t v) {
    ad_scalar s = {};
    s.kind = AD_SCALAR_INT;
    s.as.i = v;
    return s;
}
inline ad_scalar boolean(bool v) {
    ad_scalar s = {};
    s.kind = AD_SCALAR_BOOL;
    s.as.b = v;
    return s;
}
inline ad_scalar number(double v) {
    ad_scalar s = {};
    s.kind = AD_SCALAR_FLOAT;
    s.as.f = v;
    return s;
}

/* An open device. Runs calls; afterwards fault, run and sized say what came of it. */
struct host {
    const ad_backend *backend = ad_backend_get();
    ad_device *device = nullptr;
    ad_stream *stream = nullptr;
    ad_fault fault = {};
    struct engine : ad_run {
        engine() : ad_run{} {}
        std::vector<std::unique_ptr<char[]>> scratch;
        std::vector<char> sized;
        int64_t reply[8];
        int allowed = 1 << 30; /* allocations before one fails */
    } run;

    explicit host(int threads = 3) {
        cr_assert_eq(backend->device_open(0, threads, nullptr, &device, &fault), 0, "%s", fault.text);
        cr_assert_eq(backend->stream_open(device, 0, &stream, &fault), 0, "%s", fault.text);
        run.workspace = [](ad_run *r, uint64_t size) -> void * {
            engine *e = static_cast<engine *>(r);
            if (e->allowed-- <= 0) return nullptr;
            e->scratch.emplace_back(new char[size + 256]);
            memset(e->scratch.back().get(), 0xa5, size + 256);
            return reinterpret_cast<void *>((reinterpret_cast<uintptr_t>(e->scratch.back().get()) + 255) / 256 * 256);
        };
        run.output = [](ad_run *r, int, uint64_t size) -> void * {
            engine *e = static_cast<engine *>(r);
            if (e->allowed-- <= 0) return nullptr;
            e->sized.assign(size + 16, 0x5a);
            return e->sized.data();
        };
    }
    ~host() {
        backend->stream_close(stream);
        backend->device_close(device);
    }

    int call(int row, int loop, std::vector<arg> outputs, std::vector<arg> inputs,
             std::vector<ad_scalar> parameters = {}) {
        std::vector<ad_operand> operands;
        for (std::vector<arg> *list : {&outputs, &inputs})
            for (arg &a : *list) {
                a.o.desc.shape = a.shape.data();
                a.o.desc.strides = a.strides.data();
                operands.push_back(a.o);
            }
        ad_op op = {};
        op.opcode = AD_REQ_CALL;
        op.row = uint16_t(row);
        op.loop = uint8_t(loop);
        op.nout = uint8_t(outputs.size());
        op.nin = uint8_t(inputs.size());
        op.nparam = uint8_t(parameters.size());
        op.operand = operands.data();
        op.param = parameters.data();
        run.scratch.clear();
        run.values = run.reply;
        run.nvalues = 0;
        run.wrote = false;
        fault = {};
        return backend->run(stream, &op, &run, &fault);
    }
};

#define ASSERT_OK(expression) cr_assert_eq(expression, 0, "%s", h.fault.text)

#endif
