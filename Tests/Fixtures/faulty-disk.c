/* A disk that fails, under one program: a library for LD_PRELOAD that stands before the calls by which LMDB and the
 * store change data.mdb. Tests build it with cc and preload it into posternd.
 *
 *   FAULTY_DISK_FILE=data.mdb        the end of the path of the files it is about
 *   FAULTY_DISK_RULES=/path/rules    its orders, read again before each call; no file means no faults
 *   FAULTY_DISK_FULL=/witness        optional: the end of the path of a file that takes no byte, whatever the orders say,
 *                                    as on a full disk that never overwrites a block
 *   FAULTY_DISK_COUNT=/path/count    optional: the number of calls seen so far is kept here, as text
 *
 * The rules are lines of words:
 *
 *   space <bytes>                    the disk has room for that many bytes of the file, and no more
 *   fail <calls> <from> <count> <how>
 *                                    of the calls of a kind, counted from 1 since the program began, those from
 *                                    <from> on fail, <count> of them (0: all)
 *   <calls>: write (pages), meta (LMDB's two first pages), sync, grow, list (readdir of a directory),
 *            link (of the file to another name), all
 *   <how>:   ENOSPC, EDQUOT, EIO, EROFS, EEXIST, EPERM, or short (half is written; other calls with "short" fail
 *            with ENOSPC)
 *
 * Example: "fail sync 3 1 EIO" lets the third sync fail. Counts of a kind go on while there are no rules.
 */
#define _GNU_SOURCE
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

enum kind { WRITE, META, SYNC, GROW, LIST, LINK, KINDS };

static const char *const kind_names[KINDS] = {"write", "meta", "sync", "grow", "list", "link"};
static unsigned long counts[KINDS], all_count;
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;

static ssize_t (*real_pwrite)(int, const void *, size_t, off_t);
static ssize_t (*real_pwritev)(int, const struct iovec *, int, off_t);
static ssize_t (*real_write)(int, const void *, size_t);
static ssize_t (*real_writev)(int, const struct iovec *, int);
static int (*real_fdatasync)(int);
static int (*real_fsync)(int);
static int (*real_fallocate)(int, int, off_t, off_t);
static int (*real_ftruncate)(int, off_t);
static struct dirent *(*real_readdir)(DIR *);
static int (*real_link)(const char *, const char *);

__attribute__((constructor)) static void find_real_calls(void) {
    real_pwrite = dlsym(RTLD_NEXT, "pwrite");
    real_pwritev = dlsym(RTLD_NEXT, "pwritev");
    real_write = dlsym(RTLD_NEXT, "write");
    real_writev = dlsym(RTLD_NEXT, "writev");
    real_fdatasync = dlsym(RTLD_NEXT, "fdatasync");
    real_fsync = dlsym(RTLD_NEXT, "fsync");
    real_fallocate = dlsym(RTLD_NEXT, "fallocate");
    real_ftruncate = dlsym(RTLD_NEXT, "ftruncate");
    real_readdir = dlsym(RTLD_NEXT, "readdir");
    real_link = dlsym(RTLD_NEXT, "link");
}

static int has_end(const char *path, ssize_t length, const char *end) {
    if (!end || length < (ssize_t)strlen(end)) return 0;
    return memcmp(path + length - strlen(end), end, strlen(end)) == 0;
}

static int is_at(int file, const char *end) {
    char name[64], path[PATH_MAX];
    if (!end || !real_pwrite) return 0;
    snprintf(name, sizeof name, "/proc/self/fd/%d", file);
    return has_end(path, readlink(name, path, sizeof path - 1), end);
}

static int is_ours(int file) { return is_at(file, getenv("FAULTY_DISK_FILE")); }

static int is_full(int file) { return is_at(file, getenv("FAULTY_DISK_FULL")); }

static int error_named(const char *name) {
    if (!strcmp(name, "EIO")) return EIO;
    if (!strcmp(name, "EDQUOT")) return EDQUOT;
    if (!strcmp(name, "EROFS")) return EROFS;
    if (!strcmp(name, "EEXIST")) return EEXIST;
    if (!strcmp(name, "EPERM")) return EPERM;
    return ENOSPC;
}

/* What the rules say about this call: 0, or an errno, or -1 for a short write. `space` is set if there is such a rule. */
static int fault(enum kind kind, long long *space) {
    const char *path = getenv("FAULTY_DISK_RULES"), *counted = getenv("FAULTY_DISK_COUNT");
    char line[256], word[3][32];
    unsigned long from, count;
    int result = 0;
    pthread_mutex_lock(&mutex);
    counts[kind]++;
    all_count++;
    *space = -1;
    FILE *rules = path ? fopen(path, "re") : NULL;
    while (rules && fgets(line, sizeof line, rules)) {
        if (sscanf(line, "space %lld", space) == 1) continue;
        if (sscanf(line, "%31s %31s %lu %lu %31s", word[0], word[1], &from, &count, word[2]) != 5) continue;
        unsigned long number;
        if (!strcmp(word[1], "all")) number = all_count;
        else if (!strcmp(word[1], kind_names[kind])) number = counts[kind];
        else continue;
        if (number < from || (count && number >= from + count)) continue;
        result = strcmp(word[2], "short") ? error_named(word[2]) : kind == WRITE || kind == META ? -1 : ENOSPC;
    }
    if (rules) fclose(rules);
    if (counted) {
        FILE *out = fopen(counted, "we");
        if (out) {
            fprintf(out, "all %lu write %lu meta %lu sync %lu grow %lu list %lu link %lu\n", all_count,
                    counts[WRITE], counts[META], counts[SYNC], counts[GROW], counts[LIST], counts[LINK]);
            fclose(out);
        }
    }
    pthread_mutex_unlock(&mutex);
    return result;
}

static ssize_t write_some(int file, const struct iovec *parts, int count, off_t offset, size_t allowed) {
    ssize_t done = 0;
    for (int i = 0; i < count && allowed; i++) {
        size_t length = parts[i].iov_len < allowed ? parts[i].iov_len : allowed;
        ssize_t written = real_pwrite(file, parts[i].iov_base, length, offset + done);
        if (written < 0) return done ? done : -1;
        done += written;
        allowed -= written;
    }
    return done;
}

/* Writes as the rules allow; -2 if there is nothing against the call. */
static ssize_t faulty_write(int file, const struct iovec *parts, int count, off_t offset) {
    size_t total = 0;
    long long space;
    for (int i = 0; i < count; i++) total += parts[i].iov_len;
    int error = fault(offset < 8192 && total < 4096 ? META : WRITE, &space);
    if (error == -1) return write_some(file, parts, count, offset, total / 2 & ~(size_t)511);
    if (error) return errno = error, -1;
    if (space < 0 || (long long)(offset + total) <= space) return -2;
    struct stat status;
    /* What lies inside of the file has its blocks already. */
    if (fstat(file, &status) == 0 && (long long)(offset + total) <= (long long)status.st_size) return -2;
    if (offset >= space) return errno = ENOSPC, -1;
    return write_some(file, parts, count, offset, space - offset);
}

ssize_t pwrite(int file, const void *bytes, size_t length, off_t offset) {
    struct iovec part = {(void *)bytes, length};
    if (is_full(file)) return errno = ENOSPC, -1;
    ssize_t result = is_ours(file) ? faulty_write(file, &part, 1, offset) : -2;
    return result == -2 ? real_pwrite(file, bytes, length, offset) : result;
}
ssize_t pwrite64(int file, const void *bytes, size_t length, off_t offset) {
    return pwrite(file, bytes, length, offset);
}

ssize_t pwritev(int file, const struct iovec *parts, int count, off_t offset) {
    ssize_t result = is_ours(file) ? faulty_write(file, parts, count, offset) : -2;
    return result == -2 ? real_pwritev(file, parts, count, offset) : result;
}
ssize_t pwritev64(int file, const struct iovec *parts, int count, off_t offset) {
    return pwritev(file, parts, count, offset);
}

ssize_t writev(int file, const struct iovec *parts, int count) {
    if (!is_ours(file)) return real_writev(file, parts, count);
    off_t offset = lseek(file, 0, SEEK_CUR);
    ssize_t result = faulty_write(file, parts, count, offset);
    if (result == -2) return real_writev(file, parts, count);
    if (result > 0) lseek(file, offset + result, SEEK_SET);
    return result;
}

ssize_t write(int file, const void *bytes, size_t length) {
    struct iovec part = {(void *)bytes, length};
    if (!real_write || !is_ours(file)) return real_write(file, bytes, length);
    return writev(file, &part, 1);
}

static int faulty_sync(int file) {
    long long space;
    int error = is_ours(file) ? fault(SYNC, &space) : 0;
    if (error) errno = error > 0 ? error : ENOSPC;
    return error;
}
int fdatasync(int file) { return faulty_sync(file) ? -1 : real_fdatasync(file); }
int fsync(int file) { return faulty_sync(file) ? -1 : real_fsync(file); }

static int faulty_growth(int file, off_t end) {
    long long space;
    struct stat status;
    int error = fault(GROW, &space);
    if (error) return errno = error > 0 ? error : ENOSPC, -1;
    if (space >= 0 && end > space && !(fstat(file, &status) == 0 && end <= status.st_size)) return errno = ENOSPC, -1;
    return 0;
}

int fallocate(int file, int mode, off_t offset, off_t length) {
    if (is_ours(file) && faulty_growth(file, offset + length)) return -1;
    return real_fallocate(file, mode, offset, length);
}
int fallocate64(int file, int mode, off_t offset, off_t length) { return fallocate(file, mode, offset, length); }

int ftruncate(int file, off_t length) {
    if (is_ours(file) && faulty_growth(file, length)) return -1;
    return real_ftruncate(file, length);
}
int ftruncate64(int file, off_t length) { return ftruncate(file, length); }

struct dirent *readdir(DIR *directory) {
    long long space;
    if (!real_readdir) find_real_calls();
    int before = errno;
    int error = is_ours(dirfd(directory)) ? fault(LIST, &space) : 0;
    /* At the end of a directory errno stays what it was: callers tell the end from an error by it. */
    errno = error ? error : before;
    return error ? NULL : real_readdir(directory);
}
/* The same on machines of 64 bits. */
struct dirent64 *readdir64(DIR *directory) { return (struct dirent64 *)readdir(directory); }

int link(const char *from, const char *to) {
    long long space;
    if (!real_link) find_real_calls();
    int error = has_end(from, strlen(from), getenv("FAULTY_DISK_FILE")) ? fault(LINK, &space) : 0;
    if (error) return errno = error, -1;
    return real_link(from, to);
}
