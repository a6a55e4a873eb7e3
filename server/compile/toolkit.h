/* The places of the compilers: NVRTC with CUDA's headers, and the host's compiler. */
#ifndef AD_SERVER_COMPILE_TOOLKIT_H
#define AD_SERVER_COMPILE_TOOLKIT_H

#include <stdbool.h>
#include <stddef.h>

#define AD_TOOLKIT_PATH 4096

/* Find NVRTC's library. The places are, in this order: a Python package nvidia-* beside the installed wheel,
 * LD_LIBRARY_PATH, CUDA_HOME or CUDA_PATH, the toolkit, and the system's libraries. program: the path of a program in
 * the wheel. False: there is none. */
bool ad__toolkit_nvrtc(const char *program, char out[AD_TOOLKIT_PATH]);
/* Find the toolkit's folder of headers number `index`, from 0; false: there are no more. */
bool ad__toolkit_include(const char *nvrtc, int index, char out[AD_TOOLKIT_PATH]);
/* Find the host's C++ compiler, with links resolved; false: there is none. */
bool ad__toolkit_host(char out[AD_TOOLKIT_PATH]);
/* Identify a version of a file, wherever it is copied to: by its linker's build id, or by its size and time. "":
 * there is no file. */
void ad__toolkit_identity(const char *path, char *out, size_t size);

#endif
