/* A function in place of GnuTLS. Distributions' libmicrohttpd is linked with it, although it is not used here and
 * would bring ten libraries along. The Makefile maps its names to this function. */
#ifndef AD_SERVER_FRONT_OBSERVE_NO_TLS_H
#define AD_SERVER_FRONT_OBSERVE_NO_TLS_H

int ad__http_no_tls(void);

#endif
