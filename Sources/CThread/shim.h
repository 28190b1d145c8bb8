// Parts of glibc and Linux for threads, the process and its files that Swift's Glibc module leaves out, because it is read without
// _GNU_SOURCE, or because they take variable arguments.
#include <sched.h>
#include <semaphore.h>
#include <stdint.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

// sem_timedwait(3) on a clock of choice, since glibc 2.30.
extern int sem_clockwait(sem_t *semaphore, clockid_t clock, const struct timespec *until);

// The policy of threads that run only while no other thread wants the processor: sched(7).
#define THREAD_POLICY_IDLE 5

// struct sched_attr of sched_setattr(2), as of Linux 3.14.
struct thread_attributes {
    uint32_t size, policy;
    uint64_t flags;
    int32_t nice;
    uint32_t priority;
    uint64_t runtime, deadline, period;
};

// Asks for turns of `nanoseconds` for the calling thread, at its present nice value. Linux 6.12 and later grant it.
static inline long thread_set_turn(uint64_t nanoseconds) {
    struct thread_attributes attributes = {
        .size = sizeof attributes, .policy = SCHED_OTHER, .nice = getpriority(PRIO_PROCESS, 0), .runtime = nanoseconds,
    };
    return syscall(SYS_sched_setattr, 0, &attributes, 0);
}

// PR_SET_DUMPABLE of prctl(2), off: the memory of the process is for root only, and is never dumped.
static inline int process_hide_memory(void) { return prctl(PR_SET_DUMPABLE, 0UL, 0UL, 0UL, 0UL); }

// The number of processors on which the calling thread may run; 0 if the system does not tell. glibc's function for
// sched_getaffinity(2), and its macros, need _GNU_SOURCE. The system call returns the bytes that it wrote.
static inline long thread_processor_count(void) {
    unsigned long mask[128] = {0};
    long byte_count = syscall(SYS_sched_getaffinity, 0, sizeof mask, mask), count = 0;
    for (long word = 0; word < byte_count / (long)sizeof mask[0]; word++) count += __builtin_popcountl(mask[word]);
    return count;
}

// How often the calling thread was interrupted so that another thread could run. RUSAGE_THREAD of getrusage(2), which
// needs _GNU_SOURCE, is 1.
static inline long thread_interruptions(void) {
    struct rusage usage;
    return getrusage(1, &usage) == 0 ? usage.ru_nivcsw : 0;
}

// Renames a file, unless the new name is taken: EEXIST. renameat2(2) and RENAME_NOREPLACE, which is 1, need _GNU_SOURCE.
// AT_FDCWD of fcntl.h, -100, is the working directory. EINVAL: the file system cannot do this.
static inline long file_move_to_free_name(const char *path, const char *name) {
    return syscall(SYS_renameat2, -100, path, -100, name, 1U);
}
