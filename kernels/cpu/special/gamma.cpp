#include "kernels/special/gamma.h"
