/* Only loans of a GPU's memory wait by epoll, and there are none on macOS. */
#include <errno.h>
#include <stdint.h>

#define EPOLL_CLOEXEC 0
#define EPOLL_CTL_ADD 1
#define EPOLL_CTL_DEL 2
#define EPOLLIN 1
#define EPOLLRDHUP 2

struct epoll_event {
    uint32_t events;
    union {
        void *ptr;
    } data;
};

static inline int epoll_create1(int flags) {
    (void)flags;
    errno = ENOSYS;
    return -1;
}

static inline int epoll_ctl(int epoll, int operation, int fd, struct epoll_event *event) {
    (void)epoll, (void)operation, (void)fd, (void)event;
    errno = ENOSYS;
    return -1;
}

static inline int epoll_wait(int epoll, struct epoll_event *event, int most, int timeout) {
    (void)epoll, (void)event, (void)most, (void)timeout;
    errno = ENOSYS;
    return -1;
}
