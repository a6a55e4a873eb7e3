#include "kernels/special/elementary.h"
