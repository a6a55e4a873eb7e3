#include "kernels/special/integrals.h"
