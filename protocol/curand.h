/* Calls `curand` and `curand_seed`: numbers of cuRAND's generators, whose states are an array. */
#ifndef AD_PROTOCOL_CURAND_H
#define AD_PROTOCOL_CURAND_H

#include "protocol/distribution.h"
#include "protocol/op.h"

#ifdef __cplusplus
extern "C" {
#endif

/* XOR128 is none of cuRAND's: CuPy's older functions draw an element from the sequence of a seed, which is one more for
 * the next element. State t begins from seed + t. */
enum { AD_CURAND_XORWOW, AD_CURAND_MRG32K3A, AD_CURAND_PHILOX, AD_CURAND_XOR128, AD_CURAND_GENERATORS };
/* Sets of generators, a bit each. */
enum {
    AD_CURAND_ELEMENTS = 1 << AD_CURAND_XOR128,
    AD_CURAND_SEQUENCES = AD_CURAND_ELEMENTS - 1,
    AD_CURAND_ALL = AD_CURAND_ELEMENTS | AD_CURAND_SEQUENCES
};
/* The order in which states are drawn from. DEVICE: states take turns, element by element. HOST: likewise from a first
 * state on, with both numbers of a pair of normal ones from one state. */
enum { AD_CURAND_DEVICE, AD_CURAND_HOST, AD_CURAND_ORDERS };
/* An array of states is of uint32 and of shape (AD_CURAND_WORDS, states). */
enum { AD_CURAND_WORDS = 12, AD_CURAND_STATES = 1 << 24 };
/* Elements of a call for each state: one state's are drawn one after another, which must end some day. */
enum { AD_CURAND_MOST = 1 << 22 };

/* The loops of a row of distribution.def with a generator and in an order; 0: there are none. */
uint32_t ad__curand_loops(int64_t id, int64_t generator, int64_t order);
/* ns for each element of an operation that draws random numbers again and again until one is accepted, beyond what its
 * row of call.def says; 0 for others. */
int ad__random_cost(const ad_op *op);

#ifdef __cplusplus
}
#endif
#endif
