/* Heat in a square plate with one hot edge, until it settles; slices are views, so each step sends six short requests.
 * cc heat.c $(pkg-config --cflags --libs arrayd) -lm && ./a.out [url] */
#include <arrayd.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#define N 64
#define STEPS 4000

static void check_status(int status) {
    if (!status) return;
    fprintf(stderr, "%s\n", ad_error_message());
    exit(1);
}

/* Return a[top:top+N-2, left:left+N-2]. */
static ad_array *slice_inner(const ad_array *a, int64_t top, int64_t left) {
    ad_array *rows, *both;
    check_status(ad_slice(a, 0, top, top + N - 2, 1, &rows));
    check_status(ad_slice(rows, 1, left, left + N - 2, 1, &both));
    ad_array_release(rows);
    return both;
}

/* Set each inner point to the mean of its neighbours. */
static void average_neighbours(ad_array *centre, ad_array *const *around) {
    ad_options into = AD_OPTIONS_INIT;
    ad_array *ns, *we, *sum, *result;
    check_status(ad_add(ad_of(around[0]), ad_of(around[1]), &ns));
    check_status(ad_add(ad_of(around[2]), ad_of(around[3]), &we));
    check_status(ad_add(ad_of(ns), ad_of(we), &sum));
    into.out[0] = centre;
    check_status(ad_ufunc_call(NULL, AD_UFUNC_multiply, (ad_in[]){ad_of(sum), ad_float(0.25)}, &into, &result));
    ad_array *done[] = {ns, we, sum, result};
    for (int i = 0; i < 4; i++) ad_array_release(done[i]);
}

/* Print the plate, and check its middle. It must be a quarter: each edge alone would give that, and all four together
 * 1. */
static int report_plate(const double *plate) {
    double middle = (plate[(N / 2 - 1) * N + N / 2 - 1] + plate[N / 2 * N + N / 2]) / 2;
    for (int y = 0; y < N; y += 4) {
        for (int x = 0; x < N; x += 2) putchar(" .:-=+*#%@"[(int)(plate[y * N + x] * 9.99)]);
        putchar('\n');
    }
    printf("in the middle %.4f, expected 0.2500\n", middle);
    puts(fabs(middle - 0.25) < 0.005 ? "ok" : "WRONG");
    return fabs(middle - 0.25) < 0.005 ? 0 : 1;
}

int main(int argc, char **argv) {
    static double plate[N * N];
    ad_session *s;
    ad_array *t, *edge;
    check_status(ad_session_open(argc > 1 ? argv[1] : NULL, &s));
    check_status(ad_zeros(s, AD_FLOAT64, 2, (int64_t[]){N, N}, &t));
    check_status(ad_slice(t, 0, 0, 1, 1, &edge));
    check_status(ad_copy_into(edge, ad_float(1), 3));
    ad_array *centre = slice_inner(t, 1, 1);
    ad_array *around[] = {slice_inner(t, 0, 1), slice_inner(t, 2, 1), slice_inner(t, 1, 0), slice_inner(t, 1, 2)};
    for (int i = 0; i < STEPS; i++) average_neighbours(centre, around);
    check_status(ad_download(t, plate, sizeof plate));
    for (int i = 0; i < 4; i++) ad_array_release(around[i]);
    ad_array_release(centre);
    ad_array_release(edge);
    ad_array_release(t);
    ad_session_close(s);
    return report_plate(plate);
}
