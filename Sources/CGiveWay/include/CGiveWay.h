// Computations that let other threads run in between.
//
// Linux looks at its timer tick whether a running thread has to give way, and on many systems the tick comes every 4 ms. A
// thread that wakes up usually runs at once, but not when it has just had more than its share, be that only by a
// microsecond: then it waits for the tick, even behind a thread with SCHED_IDLE. So a thread that computes for
// milliseconds asks for a signal every millisecond, and its handler calls sched_yield(2).
//
// The signal is SIGURG, which does nothing in a process without a handler. Go's runtime uses it for the same purpose.
#pragma once
#include <stdint.h>

/// Until `give_way_end`, the calling thread gives way every `every` nanoseconds, but no more after `until`, a time of
/// CLOCK_MONOTONIC in nanoseconds. Does nothing where the system has no timer left, or SIGURG has another handler.
void give_way_begin(int64_t every, int64_t until);
void give_way_end(void);

/// How often the calling thread gave way.
int64_t give_way_count(void);
