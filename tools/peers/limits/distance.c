// Measures how far apart two processors are: the time in which a cache line goes from one to the other, in nanoseconds. The
// host of a virtual machine moves its processors, and memory that threads share costs several times as much when the
// processors are far apart.
//   distance SECONDS
#define _GNU_SOURCE
#include "stopwatch.h"
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>

enum { round_trips = 50 };

static _Atomic long turn;
static atomic_int is_over;

static void stay_on(int processor) {
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET(processor, &set);
    sched_setaffinity(0, sizeof set, &set);
}

// Answers each odd number by the next even one.
static void *answer(void *unused) {
    stay_on(1);
    while (!is_over) {
        long now = turn;
        if (now % 2 == 1) turn = now + 1;
    }
    return unused;
}

int main(int argument_count, char **arguments) {
    if (argument_count != 2) return fprintf(stderr, "usage: distance SECONDS\n"), 2;
    stay_on(0);
    pthread_t other;
    if (pthread_create(&other, NULL, answer, NULL) != 0) return 1;
    // The best of short rounds counts: other programs make a round longer, never shorter.
    double best = 1;
    struct stopwatch watch = start_stopwatch(atof(arguments[1]));
    while (is_running(&watch)) {
        double begin = seconds_of(CLOCK_MONOTONIC);
        for (int count = 0; count < round_trips; count++) {
            turn = turn + 1;
            // Reads the clock rarely, because that takes as long as the cache line's way.
            for (long spins = 0; turn % 2 == 1 && (spins % 65536 != 65535 || is_running(&watch)); spins++) {}
        }
        double took = (seconds_of(CLOCK_MONOTONIC) - begin) / (2.0 * round_trips);
        if (took < best) best = took;
    }
    is_over = 1;
    pthread_join(other, NULL);
    printf("%.0f\n", best * 1e9);
}
