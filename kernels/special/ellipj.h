/* Jacobi's elliptic functions without a sine for each step: the ratio of cn and sn is carried through the means of
 * Gauss by sums, products and quotients (R. Bulirsch, Numerical calculation of elliptic integrals and elliptic
 * functions, Numer. Math. 7, 1965). */
#ifndef AD_KERNELS_SPECIAL_ELLIPJ_H
#define AD_KERNELS_SPECIAL_ELLIPJ_H

namespace special {
namespace body {

/* The arithmetic and geometric means, from 1 and the complement of the modulus on, until they are the same number. */
struct gauss_means {
    static constexpr int MOST = 10;
    double arithmetic[MOST], geometric[MOST], limit;
    int steps;
};

AD_BODY static void take_means(double m, gauss_means *g) {
    double a = 1, product = 1 - m;
    for (g->steps = 0;;) {
        const double b = ::sqrt(product), middle = 0.5 * (a + b);
        g->arithmetic[g->steps] = a;
        g->geometric[g->steps++] = b;
        g->limit = middle;
        if (a - b <= 1e-8 * a || g->steps == gauss_means::MOST) return;
        product = a * b;
        a = middle;
    }
}

/* sn, cn, dn and the amplitude for m between 0 and 1, neither of which it is nearly. */
AD_BODY static void step_down(double u, double m, double (&four)[4]) {
    gauss_means g;
    take_means(m, &g);
    const double angle = u * g.limit, s = ::sin(angle);
    double sn = s, cn = ::cos(angle), dn = 1;
    if (s != 0) {
        double ratio = cn / s, scaled = g.limit * ratio;
        for (int i = g.steps; i-- > 0;) {
            const double above = ratio * scaled;
            scaled *= dn;
            dn = (g.geometric[i] + above) / (g.arithmetic[i] + above);
            ratio = scaled / g.arithmetic[i];
        }
        sn = ::copysign(1 / ::sqrt(scaled * scaled + 1), s);
        cn = scaled * sn;
    }
    const double part = ::atan2(sn, cn), turn = 6.283185307179586477;
    four[0] = sn;
    four[1] = cn;
    four[2] = dn;
    four[3] = part + turn * ::rint((angle - part) / turn);
}

} // namespace body
} // namespace special
#endif
