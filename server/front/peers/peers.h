/* Peers: the servers from which this one fetches arrays, from the file of the option peers, and the fetching.
 *
 * Each has one line, with blanks between and # before a comment:
 *
 *     gpu-a tls://ad1_TOKEN@host:7312#sha256:DIGITS
 *
 * Its name is what option server-name is there. The url is as arrayctl invite prints it there, for a token with the
 * grant peer. Clients name servers, and never addresses. */
#ifndef AD_SERVER_FRONT_PEERS_H
#define AD_SERVER_FRONT_PEERS_H

#include "server/front/front.h"

/* Check this server's name (option server-name), and read the file; an empty path: there is none. The fault names file
 * and line, and shows no url. AD_E_VALUE, AD_E_SYSTEM, AD_E_MEMORY; AD_E_DENIED: others may read the file. */
int ad__peers_load(const char *server_name, const char *path, ad_peers **out, ad_fault *fault);
void ad__peers_free(ad_peers *p);
#define AD_PEER_URL 640 /* bytes of the longest url, with its end */
/* Find a peer's url. NULL: there is none of that name. */
const char *ad__peers_url(const ad_peers *p, const char *name);
/* List the names with commas between, as many as fit. */
void ad__peers_names(const ad_peers *p, char *out, size_t size);

/* ---- pull.c ---- */
/* Handle a note PULL of the domain's worker. */
void ad__pull_handle(ad_domain *d, const ad_note *note);
/* End what is fetched for a session that has ended (0: for all). */
void ad__pull_end(ad_front *f, uint64_t session);

#endif
