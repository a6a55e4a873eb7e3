/* A user's CUDA C++ as what the host's compiler takes. */
#ifndef AD_KERNELS_CPU_BACKEND_MODULE_SOURCE_H
#define AD_KERNELS_CPU_BACKEND_MODULE_SOURCE_H

#include <string>
#include <vector>

/* The source with a registration behind each extern "C" kernel, dynamic shared arrays as references, and name
 * expressions registered at the end. No line is added or taken away before the end of the source. */
std::string ad_cpu_module_source(const std::string &source, const std::vector<std::string> &names);

#endif
