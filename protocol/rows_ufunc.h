/* Ids of the rows of ufunc.def (AD_UFUNC_add) and their traits. */
#ifndef AD_PROTOCOL_ROWS_UFUNC_H
#define AD_PROTOCOL_ROWS_UFUNC_H

/* Traits of a row of ufunc.def. */
enum {
    AD_U_LIGHT = 1,             /* takes so little that a GPU's loop over vectors is unrolled */
    AD_U_LIGHT_REAL = 2,        /* light for real numbers */
    AD_U_LIGHT_FLOAT = 4,       /* light for what is computed in float */
    AD_U_LIGHT_HALF = 8,        /* light for types of two bytes */
    AD_U_MOVES = 16,            /* gives its input as it is */
    AD_U_MOVES_REAL = 32,       /* gives real numbers as they are */
    AD_U_MOVES_WHOLE = 64,      /* gives bool and integers as they are */
    AD_U_MOVES_UNSIGNED = 128,  /* gives bool and unsigned integers as they are */
    AD_U_SIGNLESS = 256,        /* gives unsigned integers the bits that it gives signed ones */
    AD_U_COMPLEX_LIBRARY = 512, /* needs libcu++ for complex numbers, which takes a compiler too long at run time */
    AD_U_SPECIAL = 1024,        /* a function of arrayd.special, which has files of its own on both backends */
    AD_U_BODY = 2048,          /* a special function that chains compiled at run time cannot have (kernels/special.h) */
    AD_U_IDENTITY_ZERO = 4096, /* 0 leaves the other input as it is */
    AD_U_IDENTITY_ONE = 8192,  /* 1 leaves the other input as it is */
    AD_U_IDENTITY_ONES = 12288,   /* a number all of whose bits are 1 leaves the other input as it is */
    AD_U_IDENTITY_LOWEST = 16384, /* minus infinity leaves the other input as it is */
    AD_U_IDENTITY_BOOL = 32768,   /* the number 0 or 1 is a truth value */
};

/* Special functions are compiled in families of sixteen ids. */
#define AD_SPECIAL_FAMILY(id) (((id)-160) / 16)

enum {
#define AD_UFUNC(id, name, ...) AD_UFUNC_##name = (id),
#include "ufunc.def"
#undef AD_UFUNC
};

#endif
