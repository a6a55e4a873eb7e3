#include "kernels/special/distributions.h"
