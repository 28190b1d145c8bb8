/* Preloaded under a program (LD_PRELOAD) to kill it at one of its calls that change files.
 *
 *   KILL_AT_CALL=n   the process gets SIGKILL instead of its n-th such call, counted from 1 over all threads
 *   KILL_TORN=1      of a write, half of the bytes are written first
 *   KILL_COUNT=path  each call appends one byte to this file: `w` for a write, `.` for any other
 *
 * Calls on sockets, pipes and terminals are not counted. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

static atomic_long calls;

#define NEXT(name) ((__typeof__(&name))dlsym(RTLD_NEXT, #name))

static void die(void) {
    syscall(SYS_kill, getpid(), SIGKILL);
    for (;;) pause();
}

/* Whether this is the call to die at. */
static int count(const char *kind) {
    static _Atomic int file = -1;
    long number = atomic_fetch_add(&calls, 1) + 1;
    const char *at = getenv("KILL_AT_CALL"), *path = getenv("KILL_COUNT");
    if (path && file < 0) file = syscall(SYS_openat, AT_FDCWD, path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    if (path) syscall(SYS_write, file, kind, 1);
    return at && atol(at) == number;
}

static int is_file(int descriptor) {
    struct stat status;
    return syscall(SYS_fstat, descriptor, &status) == 0 && (S_ISREG(status.st_mode) || S_ISDIR(status.st_mode));
}

static int is_torn(void) { return getenv("KILL_TORN") != NULL; }

#define BEFORE() do { if (count(".")) die(); } while (0)

#define OPENS(name)                                                                                                    \
    int name(const char *path, int flags, ...) {                                                                       \
        va_list rest;                                                                                                  \
        va_start(rest, flags);                                                                                         \
        int mode = va_arg(rest, int);                                                                                  \
        va_end(rest);                                                                                                  \
        if (flags & (O_CREAT | O_TRUNC)) BEFORE();                                                                     \
        return NEXT(name)(path, flags, mode);                                                                          \
    }
OPENS(open)
OPENS(open64)

#define WRITES(name)                                                                                                   \
    ssize_t name(int descriptor, const void *bytes, size_t size, off_t offset) {                                       \
        if (is_file(descriptor) && count("w")) {                                                                          \
            if (is_torn()) NEXT(name)(descriptor, bytes, size / 2, offset);                                            \
            die();                                                                                                     \
        }                                                                                                              \
        return NEXT(name)(descriptor, bytes, size, offset);                                                            \
    }
WRITES(pwrite)
WRITES(pwrite64)

ssize_t write(int descriptor, const void *bytes, size_t size) {
    if (is_file(descriptor) && count("w")) {
        if (is_torn()) NEXT(write)(descriptor, bytes, size / 2);
        die();
    }
    return NEXT(write)(descriptor, bytes, size);
}

#define VECTORS(name)                                                                                                  \
    ssize_t name(int descriptor, const struct iovec *parts, int part_count, off_t offset) {                            \
        if (is_file(descriptor) && count("w")) {                                                                          \
            if (is_torn() && part_count > 1) NEXT(name)(descriptor, parts, part_count / 2, offset);                    \
            die();                                                                                                     \
        }                                                                                                              \
        return NEXT(name)(descriptor, parts, part_count, offset);                                                      \
    }
VECTORS(pwritev)
VECTORS(pwritev64)

ssize_t writev(int descriptor, const struct iovec *parts, int part_count) {
    if (is_file(descriptor) && count("w")) {
        if (is_torn() && part_count > 1) NEXT(writev)(descriptor, parts, part_count / 2);
        die();
    }
    return NEXT(writev)(descriptor, parts, part_count);
}

#define FILES(name, argument, value)                                                                                   \
    int name argument {                                                                                                \
        if (is_file(descriptor)) BEFORE();                                                                             \
        return NEXT(name) value;                                                                                       \
    }
FILES(ftruncate, (int descriptor, off_t size), (descriptor, size))
FILES(ftruncate64, (int descriptor, off64_t size), (descriptor, size))
FILES(fallocate, (int descriptor, int mode, off_t offset, off_t size), (descriptor, mode, offset, size))
FILES(posix_fallocate, (int descriptor, off_t offset, off_t size), (descriptor, offset, size))
FILES(fsync, (int descriptor), (descriptor))
FILES(fdatasync, (int descriptor), (descriptor))
FILES(fchmod, (int descriptor, mode_t mode), (descriptor, mode))

#define NAMES(name, argument, value)                                                                                   \
    int name argument {                                                                                                \
        BEFORE();                                                                                                      \
        return NEXT(name) value;                                                                                       \
    }
NAMES(mkdir, (const char *path, mode_t mode), (path, mode))
NAMES(rename, (const char *from, const char *to), (from, to))
NAMES(link, (const char *from, const char *to), (from, to))
NAMES(unlink, (const char *path), (path))
