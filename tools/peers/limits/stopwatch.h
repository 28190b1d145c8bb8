// Counts operations until the seconds are over, then prints: OPERATIONS SECONDS CPU_SECONDS.
// CPU time comes from the process clock, which stays exact while other programs use the CPUs too. times(2), which `openssl
// speed` uses, guesses the user's share from samples and was found 50 % off on a busy machine.
#pragma once
#include <stdio.h>
#include <time.h>

struct stopwatch {
    double start, end, cpu_start;
};

static inline double seconds_of(clockid_t clock) {
    struct timespec time;
    clock_gettime(clock, &time);
    return time.tv_sec + time.tv_nsec * 1e-9;
}

static inline struct stopwatch start_stopwatch(double seconds) {
    double start = seconds_of(CLOCK_MONOTONIC);
    return (struct stopwatch){start, start + seconds, seconds_of(CLOCK_PROCESS_CPUTIME_ID)};
}

static inline int is_running(const struct stopwatch *watch) { return seconds_of(CLOCK_MONOTONIC) < watch->end; }

static inline void report(const struct stopwatch *watch, long operations) {
    printf("%ld %.6f %.6f\n", operations, seconds_of(CLOCK_MONOTONIC) - watch->start,
           seconds_of(CLOCK_PROCESS_CPUTIME_ID) - watch->cpu_start);
}
