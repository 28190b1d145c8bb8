// Makes a server slower by a known amount, for tools/bench --compare-check: with LD_PRELOAD=burn.so BURN_NANOSECONDS=2000
// each call of recv(2) that returned data takes two more microseconds of CPU time.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <time.h>

static ssize_t (*real)(int, void *, size_t, int);
static long nanoseconds;

__attribute__((constructor)) static void begin(void) {
    const char *given = getenv("BURN_NANOSECONDS");
    nanoseconds = given ? atol(given) : 0;
    real = (ssize_t (*)(int, void *, size_t, int))dlsym(RTLD_NEXT, "recv");
}

static long now(void) {
    struct timespec time;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
    return time.tv_sec * 1000000000L + time.tv_nsec;
}

ssize_t recv(int socket, void *buffer, size_t count, int flags) {
    ssize_t received = real(socket, buffer, count, flags);
    if (received > 0 && nanoseconds > 0) {
        long end = now() + nanoseconds;
        while (now() < end) {
        }
    }
    return received;
}
