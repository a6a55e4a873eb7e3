#include "server/front/observe/no_tls.h"

int ad__http_no_tls(void) { return 0; }
