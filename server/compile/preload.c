/* arrayd-paths.so: paths.c for the programs of the host's compiler. AD_PATHS lists the folders that they may see,
 * with colons between; the last one is where they run. */
#include <stdlib.h>
#include <string.h>

#include "server/compile/run.h"

static __attribute__((constructor)) void close_paths(void) {
    static const char *folders[AD_PATHS_MOST + 1];
    const char *list = getenv("AD_PATHS");
    char *text = list ? strdup(list) : NULL, *rest = text;
    int n = 0;
    while (rest && n < AD_PATHS_MOST) folders[n++] = strsep(&rest, ":");
    ad__paths_close(folders, n ? folders[n - 1] : NULL);
}
