#define _GNU_SOURCE
#include "store_fault.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <ucontext.h>
#include <unistd.h>

// store_fault_watch prepares all data. The handler only reads it, and calls only functions that signal-safety(7) lists.

struct range {
    uintptr_t begin, end;
};

static struct range map, code;
static struct store_fault_lines said;
static int status;
static atomic_bool is_watching, is_ending;

// The signals by which a process ends through its own doing: a fault, a failed check of libc, a trap of Swift.
static const struct {
    int number;
    const char *name;
} signals[] = {{SIGBUS, "SIGBUS"}, {SIGSEGV, "SIGSEGV"}, {SIGABRT, "SIGABRT"},
               {SIGILL, "SIGILL"}, {SIGTRAP, "SIGTRAP"}, {SIGFPE, "SIGFPE"}};
enum { signal_count = sizeof signals / sizeof signals[0] };
static struct sigaction before[signal_count];

static bool holds(struct range range, uintptr_t address) { return address >= range.begin && address < range.end; }

static void write_all(const char *bytes, size_t count) {
    while (count > 0) {
        // A log that nobody reads must not keep the process alive: the line may be lost, but the process must end.
        struct pollfd log = {.fd = STDERR_FILENO, .events = POLLOUT};
        if (poll(&log, 1, 1000) != 1 || (log.revents & POLLOUT) == 0) return;
        ssize_t written = write(STDERR_FILENO, bytes, count);
        if (written < 0 && errno == EINTR) continue;
        if (written <= 0) return;
        bytes += written;
        count -= (size_t)written;
    }
}

// Writes `{"time_micros":…,"cause":"…",` and the line.
static void say(const char *cause, const char *line, size_t line_byte_count) {
    if (atomic_exchange(&is_ending, true)) {
        for (;;) pause();  // Another thread is ending the process.
    }
    static char text[4096];
    static const char first[] = "{\"time_micros\":", second[] = ",\"cause\":\"", third[] = "\",";
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    uint64_t micros = (uint64_t)now.tv_sec * 1000000 + (uint64_t)now.tv_nsec / 1000;
    char digits[20];
    size_t digit_count = 0, count = 0;
    do {
        digits[digit_count++] = (char)('0' + micros % 10);
        micros /= 10;
    } while (micros > 0);
    memcpy(text, first, sizeof first - 1);
    count += sizeof first - 1;
    while (digit_count > 0) text[count++] = digits[--digit_count];
    memcpy(text + count, second, sizeof second - 1);
    count += sizeof second - 1;
    memcpy(text + count, cause, strlen(cause));
    count += strlen(cause);
    memcpy(text + count, third, sizeof third - 1);
    count += sizeof third - 1;
    if (line_byte_count <= sizeof text - count) {
        memcpy(text + count, line, line_byte_count);
        count += line_byte_count;
    }
    write_all(text, count);
}

static uintptr_t program_counter(void *context) {
#if defined(__x86_64__)
    return (uintptr_t)((ucontext_t *)context)->uc_mcontext.gregs[REG_RIP];
#elif defined(__aarch64__)
    return (uintptr_t)((ucontext_t *)context)->uc_mcontext.pc;
#else
    return 0;
#endif
}

static void received(int number, siginfo_t *info, void *context) {
    size_t index = 0;
    while (index + 1 < signal_count && signals[index].number != number) index++;
    bool is_fault = info->si_code > 0;  // Not sent with kill(2).
    // si_addr is an address only for a memory fault.
    bool is_memory = number == SIGBUS || number == SIGSEGV;
    bool is_of_store = is_fault && ((is_memory && holds(map, (uintptr_t)info->si_addr)) ||
                                    holds(code, program_counter(context)));
    if (atomic_load(&is_watching)) {
        if (is_of_store) {
            say(signals[index].name, said.of_store, said.of_store_byte_count);
            _exit(status);
        }
        // abort(3) sends its signal to its own thread.
        if (is_fault || info->si_code == SI_TKILL) say(signals[index].name, said.of_others, said.of_others_byte_count);
    }
    sigaction(number, &before[index], NULL);
    // A fault comes again as soon as this returns; a signal that was sent has to be sent again.
    if (!is_fault || number == SIGTRAP) raise(number);
}

// Fills `map` and `code` from proc(5), maps.
static void find_ranges(const char *path) {
    map = code = (struct range){0, 0};
    struct stat wanted;
    FILE *maps = fopen("/proc/self/maps", "re");
    if (maps == NULL) return;
    if (stat(path, &wanted) != 0) wanted.st_ino = 0;
    const char *name = strrchr(path, '/');
    name = name == NULL ? path : name + 1;
    char line[5120];
    while (fgets(line, sizeof line, maps) != NULL) {
        unsigned long begin, end, inode;
        int name_offset = 0;
        if (sscanf(line, "%lx-%lx %*s %*s %*s %lu %n", &begin, &end, &inode, &name_offset) != 3) continue;
        const char *file = strrchr(line + name_offset, '/');
        if (file == NULL) continue;
        file += 1;
        struct range *range = NULL;
        if (inode == wanted.st_ino && strncmp(file, name, strlen(name)) == 0) range = &map;
        if (strncmp(file, "liblmdb", 7) == 0) range = &code;
        if (range == NULL) continue;
        if (range->begin == 0 || begin < range->begin) range->begin = begin;
        if (end > range->end) range->end = end;
    }
    fclose(maps);
    // A damaged length makes a value seem to reach up to 4 GiB beyond the map.
    if (map.begin != 0) map.end += (uintptr_t)1 << 32;
}

void store_fault_watch(const char *path, struct store_fault_lines lines, int exit_status) {
    if (atomic_load(&is_watching)) return;
    find_ranges(path);
    said = lines;
    status = exit_status;
    atomic_store(&is_watching, true);
    struct sigaction action;
    memset(&action, 0, sizeof action);
    action.sa_sigaction = received;
    action.sa_flags = SA_SIGINFO | SA_ONSTACK;
    sigemptyset(&action.sa_mask);
    for (int index = 0; index < signal_count; index++) sigaction(signals[index].number, &action, &before[index]);
}

void store_fault_assertion_failed(void) {
    if (!atomic_load(&is_watching)) return;
    say("assertion", said.of_store, said.of_store_byte_count);
    _exit(status);
}

void store_fault_forget(void) {
    if (!atomic_exchange(&is_watching, false)) return;
    for (int index = 0; index < signal_count; index++) sigaction(signals[index].number, &before[index], NULL);
}
