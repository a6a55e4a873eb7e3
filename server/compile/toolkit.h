/* Where the compilers are: NVRTC and CUDA's headers, and the host's compiler. */
#ifndef AD_SERVER_COMPILE_TOOLKIT_H
#define AD_SERVER_COMPILE_TOOLKIT_H

#include <stdbool.h>
#include <stddef.h>

#define AD_TOOLKIT_PATH 4096

/* NVRTC's library: in a Python package nvidia-* beside the installed wheel (program is the path of a program in it), in
 * the folders of LD_LIBRARY_PATH, in CUDA_HOME or CUDA_PATH, in the toolkit, or where the system keeps libraries.
 * False: nowhere. */
bool ad__toolkit_nvrtc(const char *program, char out[AD_TOOLKIT_PATH]);
/* A folder of headers for the toolkit that the library belongs to, number `index` from 0; false: there are no more. */
bool ad__toolkit_include(const char *nvrtc, int index, char out[AD_TOOLKIT_PATH]);
/* The host's C++ compiler, without links; false: there is none. */
bool ad__toolkit_host(char out[AD_TOOLKIT_PATH]);
/* What tells this file from another version of it, wherever it is copied to: its linker's build id, or size and time.
 * "" : there is no file. */
void ad__toolkit_identity(const char *path, char *out, size_t size);

#endif
