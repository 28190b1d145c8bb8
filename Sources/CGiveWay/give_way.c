#define _GNU_SOURCE
#include "CGiveWay.h"
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

// glibc before 2.38 has no name for the thread of SIGEV_THREAD_ID.
#ifndef sigev_notify_thread_id
#define sigev_notify_thread_id _sigev_un._tid
#endif

static pthread_once_t installed = PTHREAD_ONCE_INIT;
static bool has_handler;

// The handler reads these in the middle of the thread's other code.
static _Thread_local volatile int64_t until_nanoseconds;
static _Thread_local volatile int64_t count;
static _Thread_local timer_t timer;
static _Thread_local bool has_timer;
static _Thread_local sigset_t mask;

static struct timespec time_of(int64_t nanoseconds) {
    return (struct timespec){nanoseconds / 1000000000, nanoseconds % 1000000000};
}

// All that it calls may be called in a signal handler: signal-safety(7), vdso(7).
static void give_way(int signal) {
    (void)signal;
    int error = errno;
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    if (now.tv_sec * INT64_C(1000000000) + now.tv_nsec < until_nanoseconds) {
        count++;
        sched_yield();
    } else if (has_timer) {
        timer_settime(timer, 0, &(struct itimerspec){0}, NULL);
    }
    errno = error;
}

static void install(void) {
    struct sigaction present, action = {.sa_handler = give_way, .sa_flags = SA_RESTART};
    if (sigaction(SIGURG, NULL, &present) != 0) return;
    if (present.sa_handler != SIG_DFL && present.sa_handler != SIG_IGN) return;
    has_handler = sigaction(SIGURG, &action, NULL) == 0;
}

void give_way_begin(int64_t every, int64_t until) {
    pthread_once(&installed, install);
    if (!has_handler || has_timer) return;
    struct sigevent event = {.sigev_notify = SIGEV_THREAD_ID, .sigev_signo = SIGURG};
    event.sigev_notify_thread_id = (int)syscall(SYS_gettid);
    if (timer_create(CLOCK_MONOTONIC, &event, &timer) != 0) return;
    has_timer = true;
    until_nanoseconds = until;
    // A thread inherits the mask of the thread that started it, and libdispatch's threads take no signals.
    sigset_t wanted;
    sigemptyset(&wanted);
    sigaddset(&wanted, SIGURG);
    pthread_sigmask(SIG_UNBLOCK, &wanted, &mask);
    struct itimerspec times = {.it_interval = time_of(every), .it_value = time_of(every)};
    timer_settime(timer, 0, &times, NULL);
}

void give_way_end(void) {
    if (!has_timer) return;
    has_timer = false;
    until_nanoseconds = 0;
    timer_delete(timer);
    pthread_sigmask(SIG_SETMASK, &mask, NULL);
}

int64_t give_way_count(void) { return count; }
