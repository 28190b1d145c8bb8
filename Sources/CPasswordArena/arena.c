#include "CPasswordArena.h"
#include <stdatomic.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

// One per thread, so that nothing here needs a lock.
struct arena {
    // The mapping that holds the arena, larger than it by a huge page.
    void *mapping;
    unsigned char *bytes;
    size_t size;
    // The bytes from the beginning that hashes wrote since the last wipe.
    size_t written;
    // The largest mapping that may be the arena now. 0 outside of a hash.
    size_t offered;
    bool is_lent;
};

static _Thread_local struct arena arena;
static _Atomic int64_t byte_count, hash_count;

static void *system_map(void *address, size_t length, int protection, int flags, int file, off_t offset) {
    return (void *)syscall(SYS_mmap, address, length, protection, flags, file, offset);
}

static int system_unmap(void *address, size_t length) { return (int)syscall(SYS_munmap, address, length); }

static void wipe_from(size_t start) {
    if (arena.written <= start) return;
    // The compiler may leave out memset, but not this.
    explicit_bzero(arena.bytes + start, arena.written - start);
    arena.written = start;
}

// A sanitizer defines the two functions itself. Hashes work there as they do without an arena.
#if defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer) || __has_feature(memory_sanitizer)
#define POSTERN_LEAVES_MMAP_ALONE 1
#endif
#endif

#ifndef POSTERN_LEAVES_MMAP_ALONE
static void *lend(size_t length) {
    // Wiped here, because a smaller hash would leave the end of a larger one as it is.
    wipe_from(length);
    arena.written = length;
    arena.is_lent = true;
    atomic_fetch_add_explicit(&hash_count, 1, memory_order_relaxed);
    return arena.bytes;
}

// `off_t` has 64 bits here, as it has in the C library's own definition.
void *mmap(void *address, size_t length, int protection, int flags, int file, off_t offset) {
    bool is_wanted = length <= arena.offered && !arena.is_lent && address == NULL && length > 0
        && protection == (PROT_READ | PROT_WRITE)
        && (flags & (MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED)) == (MAP_PRIVATE | MAP_ANONYMOUS);
    if (is_wanted) return lend(length);
    // libsodium asks for it, for hashes that are larger than the arena. See map_pages.
    if (flags & MAP_ANONYMOUS) flags &= ~MAP_POPULATE;
    return system_map(address, length, protection, flags, file, offset);
}

int munmap(void *address, size_t length) {
    if (!arena.is_lent || address != arena.bytes) return system_unmap(address, length);
    arena.is_lent = false;
    return 0;
}
#endif

// A huge page of most processors.
enum { huge_page = 2 << 20 };

// Maps `size` bytes in huge pages if the kernel has them to spare. argon2id reads all over its memory, and a processor
// remembers the places of too few small pages for 19 MiB.
//
// The hash that first writes to a page sets it up. MADV_POPULATE_WRITE and MAP_POPULATE would set up all pages in one
// call, in which the kernel keeps all mappings of the process locked. If a thread with SCHED_IDLE loses its processor
// in that call, every other thread that maps or unmaps memory waits for it: docs/decisions/0042.
static bool map_pages(size_t size) {
    // Small pages beside the huge ones are of no use, so the arena begins where a huge page may begin. Nobody touches
    // the rest of the mapping. Some of it always lies behind the arena: the kernel joins mappings of one kind that
    // touch, and then one thread's call would wait until another thread has set up a page.
    size_t whole = size + huge_page;
    unsigned char *mapping = system_map(NULL, whole, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (mapping == MAP_FAILED) return false;
    unsigned char *bytes = mapping + -(uintptr_t)mapping % huge_page;
    // What a kernel does not know or have does not matter: hashes are slower then.
    madvise(bytes, size, MADV_HUGEPAGE);
    // The arena's contents in a core dump would help to guess the password.
    madvise(bytes, size, MADV_DONTDUMP);
    arena = (struct arena){.mapping = mapping, .bytes = bytes, .size = size};
    return true;
}

bool password_arena_begin(size_t size) {
    if (arena.size < size) {
        password_arena_release();
        size_t rounded = (size + huge_page - 1) / huge_page * huge_page;
        if (!map_pages(rounded)) return false;
        atomic_fetch_add_explicit(&byte_count, (int64_t)rounded, memory_order_relaxed);
    }
    arena.offered = size;
    return true;
}

void password_arena_end(void) {
    arena.offered = 0;
    arena.is_lent = false;
}

void password_arena_wipe(void) { wipe_from(0); }

void password_arena_release(void) {
    if (arena.size == 0) return;
    wipe_from(0);
    // Before munmap, which locks all mappings while it gives pages back. On newer kernels this locks only its own.
    madvise(arena.bytes, arena.size, MADV_DONTNEED);
    system_unmap(arena.mapping, arena.size + huge_page);
    atomic_fetch_sub_explicit(&byte_count, (int64_t)arena.size, memory_order_relaxed);
    arena = (struct arena){0};
}

size_t password_arena_unwiped_byte_count(void) { return arena.written; }

int64_t password_arena_byte_count(void) { return atomic_load_explicit(&byte_count, memory_order_relaxed); }

int64_t password_arena_hash_count(void) { return atomic_load_explicit(&hash_count, memory_order_relaxed); }
