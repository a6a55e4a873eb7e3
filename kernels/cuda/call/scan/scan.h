/* Running sums and products on the device: what the host plans and the kernels are told (scan.cuh). */
#ifndef AD_KERNELS_CUDA_CALL_SCAN_SCAN_H
#define AD_KERNELS_CUDA_CALL_SCAN_SCAN_H

#include "kernels/cuda/reduce/reduce.h"

#define AD_SCAN_THREADS 256

/* Lanes: the elements along the axis at one place of the other axes. */
typedef struct ad_scan {
    const char *in;
    char *out;
    int64_t n, in_step, out_step; /* elements of a lane, and bytes between them */
    int64_t lanes, tiles;         /* tiles: pieces of a lane, a block each */
    int64_t groups;               /* of lanes side by side */
    char *messages;               /* what tiles tell those behind them */
    uint64_t tag;                 /* marks the messages of this operation */
    /* skip: NaN counts as nothing. log_x: threads side by side in a block. log_row: threads that share a row of
     * vectors; log_span: vectors of a thread in it. */
    uint8_t skip, nlane, log_x, log_row, log_span;
    ad_fold_axis lane[AD_FOLD_DIMS];
} ad_scan;

/* Kernels of one type of input and result, each a __global__ void (ad_scan). */
typedef struct ad_scan_kernels {
    const void *tiled, *rows, *across; /* NULL: none for these types */
    const void *side;                  /* as across, several lanes a thread; NULL: none */
    int width, tile, rows_of_thread;   /* elements of a vector, of a tile; of a thread in `across` */
    int lanes_of_thread, message;      /* in `side`; bytes */
} ad_scan_kernels;

#define AD_SCAN_LOADS 8     /* vectors of a thread in `tiled` */
#define AD_SCAN_ROW_LOADS 4 /* vectors of a thread in `rows` */

ad_scan_kernels ad_scan_sum(int input, int loop);
ad_scan_kernels ad_scan_product(int input, int loop);

/* Ways in which the kernels of neighbouring elements go over lanes: a block for each tile, or warps for whole lanes. */
enum { AD_SCAN_TILED, AD_SCAN_ROWS };

#endif
