/* The file of tokens, as arrayctl changes it: line by line, and as a whole or not at all. */
#ifndef AD_SERVER_CTL_TOKEN_FILE_H
#define AD_SERVER_CTL_TOKEN_FILE_H

#include "protocol/message.h"
#include "server/ctl/ctl.h"

/* Call f for each line that names somebody, with the text of the line, which f may change. The exit status; messages
 * are printed here. */
int ad__token_file_read(const ad_ctl *c, const char *path, void (*f)(void *argument, char *line), void *argument);
/* Remove the lines of `name` and append `line` (NULL: nothing). *removed: how many lines it had. With `line` a name
 * that has one already is refused. */
int ad__token_file_change(const ad_ctl *c, const char *path, const char *name, const char *line, unsigned *removed);

#endif
