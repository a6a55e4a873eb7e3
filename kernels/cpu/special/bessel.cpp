#include "kernels/special/bessel.h"
