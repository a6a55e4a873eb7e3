/* Sums on an array server: cc sum.c $(pkg-config --cflags --libs arrayd) && ./a.out [url] */
#include <arrayd.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#define N 1000000

static void check_status(int status, const char *what) {
    if (!status) return;
    fprintf(stderr, "%s: %s\n", what, ad_error_message());
    exit(1);
}

int main(int argc, char **argv) {
    ad_session *s;
    ad_session_info info;
    ad_array *x, *squares, *sum;
    double result, expected = (double)(N - 1) * N / 6 * (2.0 * N - 1);

    check_status(ad_session_open(argc > 1 ? argv[1] : NULL, &s), "open");
    ad_session_get_info(s, &info);
    printf("%s: %s, %s backend\n", info.url, info.server, info.backend);

    check_status(ad_arange(s, ad_int(0), ad_int(N), ad_int(1), AD_FLOAT64, &x), "arange");
    check_status(ad_square(ad_of(x), &squares), "square");
    check_status(ad_sum(ad_of(squares), &sum), "sum");
    check_status(ad_download(sum, &result, sizeof result), "download");
    ad_array_release(x);
    ad_array_release(squares);
    ad_array_release(sum);
    ad_session_close(s);

    printf("0^2 + 1^2 + ... + %d^2 = %.17g, expected %.17g\n", N - 1, result, expected);
    if (fabs(result - expected) > 1e-9 * expected) {
        puts("WRONG");
        return 1;
    }
    puts("ok");
    return 0;
}
