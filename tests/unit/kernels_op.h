/* Operations put together by hand, and numbers to give them. */
#ifndef AD_TESTS_KERNELS_OP_H
#define AD_TESTS_KERNELS_OP_H

#include <criterion/criterion.h>
#include <string.h>
#include <string>
#include <vector>

#include "kernels/cpu/backend/operand.h"
#include "kernels/cpu/backend/parallel.h"
#include "kernels/types.h"
#include "kernels_isa.h"
#include "protocol/rows_request.h"
#include "protocol/tables.h"

/* A view: shape and strides (bytes) beside the description that points at them. */
struct view {
    std::vector<int64_t> shape, strides;
    int dtype;
    void *data;
    view(int d, void *p, std::vector<int64_t> s, std::vector<int64_t> t) : shape(s), strides(t), dtype(d), data(p) {}
    view(int d, void *p, std::vector<int64_t> s) : shape(s), strides(s.size()), dtype(d), data(p) {
        int64_t step = ad__dtypes[d].size;
        for (size_t i = s.size(); i-- > 0; step *= s[i]) strides[i] = step;
    }
};

struct call {
    std::vector<ad_operand> operand;
    std::vector<ad_scalar> param;
    ad_op op{};
    ad_fault fault{};
    ad_run run{};

    call &add(const view &v) {
        ad_operand o{};
        o.desc.dtype = uint8_t(v.dtype);
        o.desc.ndim = uint8_t(v.shape.size());
        o.desc.shape = v.shape.data();
        o.desc.strides = v.strides.data();
        o.data = v.data;
        operand.push_back(o);
        return *this;
    }
    call &add(double v) {
        ad_operand o{};
        o.is_scalar = 1;
        o.scalar.kind = AD_SCALAR_FLOAT;
        o.scalar.as.f = v;
        operand.push_back(o);
        return *this;
    }
    call &with(int64_t v) {
        ad_scalar s{};
        s.kind = AD_SCALAR_INT;
        s.as.i = v;
        param.push_back(s);
        return *this;
    }
    call &without() {
        param.push_back(ad_scalar{});
        return *this;
    }
    int go(int opcode, int row, int loop, int nout) {
        op.opcode = uint8_t(opcode);
        op.row = uint16_t(row);
        op.loop = uint8_t(loop);
        op.nout = uint8_t(nout);
        op.nin = uint8_t(operand.size() - size_t(nout));
        op.nparam = uint8_t(param.size());
        op.operand = operand.data();
        op.param = param.data();
        return opcode == AD_REQ_UFUNC ? ad_cpu_ufunc(nullptr, &op, &run, &fault)
                                      : ad_cpu_reduce(nullptr, &op, &run, &fault);
    }
    int ufunc(int row, int loop, int nout = 1) { return go(AD_REQ_UFUNC, row, loop, nout); }
    int reduce(int row, int loop) { return go(AD_REQ_REDUCE, row, loop, 1); }
};

/* Small pseudo-random numbers, the same in every run. */
struct numbers {
    uint64_t state;
    explicit numbers(uint64_t seed) : state(seed * 2654435769u + 1) {}
    uint32_t next() {
        state = state * 6364136223846793005u + 1442695040888963407u;
        return uint32_t(state >> 33);
    }
    double uniform(double low, double high) { return low + (high - low) * next() / 2147483648.0; }
    template <class S> S element(double low, double high) {
        if constexpr (ad::is_complex<S>) return S(ad::real_t<S>(uniform(low, high)), ad::real_t<S>(uniform(low, high)));
        else return ad::cast<S>(uniform(low, high));
    }
    template <class S> std::vector<S> elements(size_t n, double low, double high) {
        std::vector<S> v(n);
        for (S &x : v) x = element<S>(low, high);
        return v;
    }
};

#endif
