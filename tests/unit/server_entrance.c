/* The entrance tells a client's principal by its connection, whatever address the kernel says. */
#include <criterion/criterion.h>
#include <arpa/inet.h>
#include <string.h>
#include <sys/socket.h>

#include "tests/unit/server_front.h"

static const char *peer; /* the address of whom the kernel speaks; NULL: it says what it does; "": it says nothing */

int __real_getpeername(int fd, struct sockaddr *address, socklen_t *size);
int __wrap_getpeername(int fd, struct sockaddr *address, socklen_t *size);
int __wrap_getpeername(int fd, struct sockaddr *address, socklen_t *size) {
    struct sockaddr_in6 a = {.sin6_family = AF_INET6};
    if (!peer) return __real_getpeername(fd, address, size);
    if (inet_pton(AF_INET6, peer, &a.sin6_addr) != 1) return -1;
    memcpy(address, &a, sizeof a);
    return 0;
}

Test(entrance, clients_of_one_network_are_one) {
    static const char *const rows[][2] = {{"2001:db8:1:2:3:4:5:6", "tls:2001:db8:1:2::/64"},
                                          {"::1", "tls:::/64"},
                                          {"::ffff:192.0.2.7", "tls:192.0.2.7"},
                                          {"0:1::ffff:c000:207", "tls:0:1::/64"},
                                          {"::1:0:ffff:c000:207", "tls:0:0:0:1::/64"},
                                          {"", "tls:?"}};
    char from[64];
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        peer = rows[i][0];
        ad__entrance_from(-1, AD_WAY_TLS, from, sizeof from);
        cr_expect_str_eq(from, rows[i][1]);
    }
    ad__entrance_from(-1, AD_WAY_TCP, from, sizeof from);
    cr_expect_str_eq(from, "tcp:?");
    peer = NULL;
}

Test(entrance, of_whom_the_kernel_says_nothing_is_no_administrator) {
    ad_front front;
    ad_entrant who;
    begin_front(&front, NULL);
    cr_expect_not(ad__entrance_admin(&front, -1, &who));
    cr_expect_str_eq(who.who, "");
    end_front(&front);
}
