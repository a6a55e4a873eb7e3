/* libmicrohttpd of the distributions has TLS by GnuTLS in it, which is never used here and would bring ten libraries
 * along. The Makefile lets its names mean this function. */
#ifndef AD_SERVER_FRONT_OBSERVE_NO_TLS_H
#define AD_SERVER_FRONT_OBSERVE_NO_TLS_H

int ad__http_no_tls(void);

#endif
