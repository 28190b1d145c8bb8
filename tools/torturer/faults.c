// Preloaded under a posternd: makes its disk fail, fill, hang and forget, and its wall clock step.
//
// All orders and counts stand in `struct control`, a file that the test maps too (TORTURE_CONTROL). Only regular files
// below TORTURE_DIRECTORY are touched. For each write that is not yet synced, the old bytes are kept in
// TORTURE_JOURNAL/<file name>, so that the test can take some writes back, as a power loss does.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

// `Control` in server.py has the same order.
struct control {
    volatile int64_t clock_offset_micros;
    volatile int64_t size_limit;        // files cannot grow beyond this; 0 = no limit
    volatile int64_t write_error;       // errno of failing writes
    volatile int64_t write_error_count; // how many are still to fail
    volatile int64_t meta_error_count;  // of writes to a meta page, with write_error
    volatile int64_t short_write_count; // how many are still to be cut in half
    volatile int64_t sync_error_count;  // how many syncs are still to fail with EIO
    volatile int64_t sync_hangs;        // syncs wait while this is not 0
    volatile int64_t kill_countdown;    // SIGKILL at this many writes, syncs and new names from now; 0 = never
    volatile int64_t kill_tears;        // and half of that write is done
    volatile int64_t write_count;
    volatile int64_t sync_count;
    volatile int64_t fault_count;
    volatile int64_t lost_sync_count;   // failed syncs of data.mdb
};

static struct control *control;
static char directory[PATH_MAX], journal[PATH_MAX];
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

__attribute__((constructor)) static void begin(void) {
    const char *path = getenv("TORTURE_CONTROL"), *below = getenv("TORTURE_DIRECTORY");
    const char *log = getenv("TORTURE_JOURNAL");
    if (!path || !below || !log) return;
    prctl(PR_SET_PDEATHSIG, SIGKILL); // no server outlives its test
    int file = open(path, O_RDWR | O_CLOEXEC);
    if (file < 0) return;
    void *mapped = mmap(NULL, sizeof(struct control), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    close(file);
    if (mapped == MAP_FAILED) return;
    strncpy(directory, below, sizeof directory - 1);
    strncpy(journal, log, sizeof journal - 1);
    control = mapped;
}

// Takes one from a count. Returns whether there was one.
static int take(volatile int64_t *count) {
    int64_t present = __atomic_load_n(count, __ATOMIC_SEQ_CST);
    while (present > 0) {
        if (__atomic_compare_exchange_n(count, &present, present - 1, 0, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST)) {
            __atomic_add_fetch(&control->fault_count, 1, __ATOMIC_SEQ_CST);
            return 1;
        }
    }
    return 0;
}

// The name of one of the server's files within its directory; NULL for anything else.
static const char *name_of(int file, char *path) {
    struct stat status;
    if (!control || fstat(file, &status) != 0 || !S_ISREG(status.st_mode)) return NULL;
    char link[64];
    strcpy(link, "/proc/self/fd/");
    char digits[12];
    int count = 0;
    unsigned number = (unsigned)file;
    do digits[count++] = (char)('0' + number % 10);
    while (number /= 10);
    char *end = link + strlen(link);
    while (count) *end++ = digits[--count];
    *end = 0;
    ssize_t length = readlink(link, path, PATH_MAX - 1);
    if (length <= 0) return NULL;
    path[length] = 0;
    size_t prefix = strlen(directory);
    if (strncmp(path, directory, prefix) != 0 || path[prefix] != '/' || strchr(path + prefix + 1, '/')) return NULL;
    return path + prefix + 1;
}

static int journal_of(const char *name, int flags) {
    char path[2 * PATH_MAX];
    strcpy(path, journal);
    strcat(path, "/");
    strncat(path, name, NAME_MAX);
    return (int)syscall(SYS_openat, AT_FDCWD, path, flags | O_CLOEXEC, 0600);
}

// Keeps what lies at [offset, offset + count): offset, count, then that many bytes (zeroes behind the end of the file).
static void remember(int file, const char *name, uint64_t offset, uint64_t count) {
    int log = journal_of(name, O_WRONLY | O_CREAT | O_APPEND);
    if (log < 0) return;
    uint64_t header[2] = {offset, count};
    char *old = calloc(1, count);
    if (old && syscall(SYS_pread64, file, old, count, offset) >= 0) {
        struct iovec parts[2] = {{header, sizeof header}, {old, count}};
        (void)!syscall(SYS_writev, log, parts, 2);
    }
    free(old);
    close(log);
}

static void forget(const char *name) {
    int log = journal_of(name, O_WRONLY | O_TRUNC);
    if (log >= 0) close(log);
}

static int is_last(void) {
    int64_t present = __atomic_load_n(&control->kill_countdown, __ATOMIC_SEQ_CST);
    return present > 0 && __atomic_sub_fetch(&control->kill_countdown, 1, __ATOMIC_SEQ_CST) == 0;
}

// Writes to one of the server's files at `offset`. The parts of a writev are put together before.
static ssize_t write_at(int file, const char *name, const void *bytes, size_t count, off_t offset) {
    pthread_mutex_lock(&lock);
    control->write_count++;
    int is_synced = fcntl(file, F_GETFL) & (O_DSYNC | O_SYNC);
    int is_meta = strcmp(name, "data.mdb") == 0 && offset < 8192 && count <= 4096;
    size_t allowed = count;
    int error = 0;
    if ((is_meta && take(&control->meta_error_count)) || take(&control->write_error_count)) {
        error = (int)control->write_error;
    } else if (count > 1 && take(&control->short_write_count)) {
        allowed = count / 2;
    }
    struct stat status;
    int64_t limit = control->size_limit;
    if (!error && limit && fstat(file, &status) == 0 && (int64_t)(offset + allowed) > limit
        && (int64_t)(offset + allowed) > status.st_size) {
        int64_t end = limit > status.st_size ? limit : status.st_size;
        control->fault_count++;
        if (offset >= end) error = ENOSPC;
        else allowed = (size_t)(end - offset);
    }
    ssize_t result = -1;
    if (!error) {
        remember(file, name, (uint64_t)offset, allowed);
        if (is_last()) {
            if (control->kill_tears) (void)!syscall(SYS_pwrite64, file, bytes, allowed / 2, offset);
            syscall(SYS_kill, getpid(), SIGKILL);
        }
        result = syscall(SYS_pwrite64, file, bytes, allowed, offset);
        if (is_synced && result >= 0) forget(name);
    }
    pthread_mutex_unlock(&lock);
    if (error) errno = error;
    return result;
}

ssize_t pwrite(int file, const void *bytes, size_t count, off_t offset) {
    char path[PATH_MAX];
    const char *name = name_of(file, path);
    if (!name) return syscall(SYS_pwrite64, file, bytes, count, offset);
    return write_at(file, name, bytes, count, offset);
}
ssize_t pwrite64(int file, const void *bytes, size_t count, off_t offset) { return pwrite(file, bytes, count, offset); }

ssize_t write(int file, const void *bytes, size_t count) {
    char path[PATH_MAX];
    const char *name = name_of(file, path);
    if (!name) return syscall(SYS_write, file, bytes, count);
    off_t offset = fcntl(file, F_GETFL) & O_APPEND ? lseek(file, 0, SEEK_END) : lseek(file, 0, SEEK_CUR);
    ssize_t result = write_at(file, name, bytes, count, offset);
    if (result > 0) lseek(file, offset + result, SEEK_SET);
    return result;
}

ssize_t writev(int file, const struct iovec *parts, int part_count) {
    char path[PATH_MAX];
    const char *name = name_of(file, path);
    if (!name) return syscall(SYS_writev, file, parts, part_count);
    size_t count = 0;
    for (int index = 0; index < part_count; index++) count += parts[index].iov_len;
    char *bytes = malloc(count ? count : 1), *end = bytes;
    if (!bytes) return errno = ENOMEM, -1;
    for (int index = 0; index < part_count; index++) {
        memcpy(end, parts[index].iov_base, parts[index].iov_len);
        end += parts[index].iov_len;
    }
    ssize_t result = write(file, bytes, count);
    int error = errno;
    free(bytes);
    errno = error;
    return result;
}

static int sync_file(int file, long number) {
    char path[PATH_MAX];
    const char *name = name_of(file, path);
    if (!name) return (int)syscall(number, file);
    control->sync_count++;
    while (control->sync_hangs) usleep(5000);
    if (take(&control->sync_error_count)) {
        control->lost_sync_count += strcmp(name, "data.mdb") == 0;
        return errno = EIO, -1;
    }
    if (is_last()) syscall(SYS_kill, getpid(), SIGKILL);
    pthread_mutex_lock(&lock);
    int result = (int)syscall(number, file);
    if (result == 0) forget(name);
    pthread_mutex_unlock(&lock);
    return result;
}
int fdatasync(int file) { return sync_file(file, SYS_fdatasync); }
int fsync(int file) { return sync_file(file, SYS_fsync); }

// Whether a file may grow to `end`.
static int fits(int file, off_t end) {
    char path[PATH_MAX];
    struct stat status;
    if (!name_of(file, path) || !control->size_limit || end <= control->size_limit) return 1;
    if (fstat(file, &status) == 0 && end <= status.st_size) return 1;
    control->fault_count++;
    return 0;
}
int ftruncate(int file, off_t end) {
    return fits(file, end) ? (int)syscall(SYS_ftruncate, file, end) : (errno = ENOSPC, -1);
}
int ftruncate64(int file, off_t end) { return ftruncate(file, end); }
int fallocate(int file, int mode, off_t offset, off_t count) {
    return fits(file, offset + count) ? (int)syscall(SYS_fallocate, file, mode, offset, count) : (errno = ENOSPC, -1);
}
int fallocate64(int file, int mode, off_t offset, off_t count) { return fallocate(file, mode, offset, count); }
int posix_fallocate(int file, off_t offset, off_t count) { return fallocate(file, 0, offset, count) == 0 ? 0 : errno; }
int posix_fallocate64(int file, off_t offset, off_t count) { return posix_fallocate(file, offset, count); }

// A kill can also come before a name below the directory is made, changed or removed.
static void before_name(const char *path) {
    if (control && path && strncmp(path, directory, strlen(directory)) == 0 && is_last()) {
        syscall(SYS_kill, getpid(), SIGKILL);
    }
}
int openat(int folder, const char *path, int flags, ...) {
    mode_t mode = 0;
    if (flags & (O_CREAT | O_TMPFILE)) {
        va_list rest;
        va_start(rest, flags);
        mode = va_arg(rest, mode_t);
        va_end(rest);
        before_name(path);
    }
    return (int)syscall(SYS_openat, folder, path, flags, mode);
}
int open(const char *path, int flags, ...) {
    va_list rest;
    va_start(rest, flags);
    mode_t mode = flags & (O_CREAT | O_TMPFILE) ? va_arg(rest, mode_t) : 0;
    va_end(rest);
    return openat(AT_FDCWD, path, flags, mode);
}
int open64(const char *path, int flags, ...) {
    va_list rest;
    va_start(rest, flags);
    mode_t mode = flags & (O_CREAT | O_TMPFILE) ? va_arg(rest, mode_t) : 0;
    va_end(rest);
    return openat(AT_FDCWD, path, flags | O_LARGEFILE, mode);
}
int rename(const char *from, const char *to) {
    before_name(to);
    return (int)syscall(SYS_renameat2, AT_FDCWD, from, AT_FDCWD, to, 0);
}
int link(const char *from, const char *to) {
    before_name(to);
    return (int)syscall(SYS_linkat, AT_FDCWD, from, AT_FDCWD, to, 0);
}
int unlink(const char *path) {
    before_name(path);
    return (int)syscall(SYS_unlinkat, AT_FDCWD, path, 0);
}
int mkdir(const char *path, mode_t mode) {
    before_name(path);
    return (int)syscall(SYS_mkdirat, AT_FDCWD, path, mode);
}

// Only the wall clock steps, as under a wrong time server; the clocks that measure time go on.
int clock_gettime(clockid_t clock, struct timespec *time) {
    static int (*original)(clockid_t, struct timespec *);
    if (!original) original = (int (*)(clockid_t, struct timespec *))dlsym(RTLD_NEXT, "clock_gettime");
    int result = original ? original(clock, time) : (int)syscall(SYS_clock_gettime, clock, time);
    if (result != 0 || !control || (clock != CLOCK_REALTIME && clock != CLOCK_REALTIME_COARSE)) return result;
    int64_t micros = control->clock_offset_micros, nanos = time->tv_nsec + micros % 1000000 * 1000;
    time->tv_sec += micros / 1000000 + (nanos >= 1000000000) - (nanos < 0);
    time->tv_nsec = (nanos + 1000000000) % 1000000000;
    return 0;
}
int gettimeofday(struct timeval *restrict time, void *restrict zone) {
    (void)zone;
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    time->tv_sec = now.tv_sec;
    time->tv_usec = now.tv_nsec / 1000;
    return 0;
}
time_t time(time_t *result) {
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    if (result) *result = now.tv_sec;
    return now.tv_sec;
}
