/* Users' modules on the cpu backend: rows of its table. */
#ifndef AD_KERNELS_CPU_BACKEND_MODULE_H
#define AD_KERNELS_CPU_BACKEND_MODULE_H

#include "kernels/backend.h"
#include "kernels/cpu/backend/block.h"

struct ad_kernel {
    const adrun::entry *entry;
    int64_t max_dynamic_shared, carveout;
    ad_kernel *next;
};

int ad_cpu_module_job(ad_device *device, ad_compile_job *job, ad_arena *arena, ad_fault *fault);
int ad_cpu_module_open(ad_device *device, const ad_binary *binary, ad_device_module **out, ad_fault *fault);
void ad_cpu_module_close(ad_device_module *module);
int ad_cpu_module_kernel(ad_device_module *module, const char *name, ad_kernel **out, ad_fault *fault);
int ad_cpu_module_global(ad_device_module *module, const char *name, void **address, uint64_t *size, ad_fault *fault);
int ad_cpu_kernel_info(ad_kernel *kernel, ad_kernel_info *out, ad_fault *fault);
int ad_cpu_kernel_set(ad_kernel *kernel, int64_t max_dynamic_shared, int64_t carveout, ad_fault *fault);
/* Check a launch, as far as it can be checked before. AD_E_VALUE. */
int ad_cpu_launch_check(const ad_kernel_launch *launch, ad_fault *fault);
int ad_cpu_launch(ad_stream *stream, const ad_kernel_launch *launch, ad_run *run, ad_fault *fault);

#endif
