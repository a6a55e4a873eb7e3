#include "kernels/special/complex.h"
