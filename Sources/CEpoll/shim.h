// epoll(7), which Swift's Glibc module leaves out.
#include <stdint.h>
#include <sys/epoll.h>

static inline int epoll_make(void) { return epoll_create1(EPOLL_CLOEXEC); }

// Watches a descriptor, or changes what is watched. `events` are those of poll(2), which have the same numbers here.
static inline int epoll_watch(int set, int descriptor, int is_new, uint32_t events, uint64_t key) {
    struct epoll_event event = {.events = events, .data.u64 = key};
    return epoll_ctl(set, is_new ? EPOLL_CTL_ADD : EPOLL_CTL_MOD, descriptor, &event);
}

static inline int epoll_unwatch(int set, int descriptor) {
    struct epoll_event event = {0};
    return epoll_ctl(set, EPOLL_CTL_DEL, descriptor, &event);
}

// The events of one descriptor. struct epoll_event is packed on some machines.
struct epoll_news { uint64_t key; uint32_t events; };
enum { EPOLL_NEWS_MAX = 64 };

// As epoll_wait(2), for EPOLL_NEWS_MAX descriptors at most.
static inline int epoll_collect(int set, struct epoll_news *news, int milliseconds) {
    struct epoll_event events[EPOLL_NEWS_MAX];
    int count = epoll_wait(set, events, EPOLL_NEWS_MAX, milliseconds);
    for (int i = 0; i < count; i++) {
        news[i].key = events[i].data.u64;
        news[i].events = events[i].events;
    }
    return count;
}
