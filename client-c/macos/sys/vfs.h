/* fstatfs is declared elsewhere on macOS. */
#include <sys/mount.h>
#include <sys/param.h>
