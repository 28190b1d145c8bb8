#include "CPasswordArena.h"
#include <stdatomic.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

// One per thread, so that nothing here needs a lock.
struct arena {
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
    return is_wanted ? lend(length) : system_map(address, length, protection, flags, file, offset);
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
static unsigned char *map_pages(size_t size) {
    // Small pages beside the huge ones are of no use, so the mapping begins where a huge page may begin.
    size_t whole = size + huge_page;
    unsigned char *mapped = system_map(NULL, whole, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (mapped == MAP_FAILED) return NULL;
    size_t before = -(uintptr_t)mapped % huge_page, behind = huge_page - before;
    if (before > 0) system_unmap(mapped, before);
    system_unmap(mapped + before + size, behind);
    mapped += before;
    // What a kernel does not know or have does not matter: hashes are slower then.
    madvise(mapped, size, MADV_HUGEPAGE);
#ifdef MADV_POPULATE_WRITE
    // Sets up all pages at once, because one after the other takes longer.
    madvise(mapped, size, MADV_POPULATE_WRITE);
#endif
    // The arena's contents in a core dump would help to guess the password.
    madvise(mapped, size, MADV_DONTDUMP);
    return mapped;
}

bool password_arena_begin(size_t size) {
    if (arena.size < size) {
        password_arena_release();
        size_t rounded = (size + huge_page - 1) / huge_page * huge_page;
        unsigned char *bytes = map_pages(rounded);
        if (bytes == NULL) return false;
        arena = (struct arena){.bytes = bytes, .size = rounded};
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
    system_unmap(arena.bytes, arena.size);
    atomic_fetch_sub_explicit(&byte_count, (int64_t)arena.size, memory_order_relaxed);
    arena = (struct arena){0};
}

size_t password_arena_unwiped_byte_count(void) { return arena.written; }

int64_t password_arena_byte_count(void) { return atomic_load_explicit(&byte_count, memory_order_relaxed); }

int64_t password_arena_hash_count(void) { return atomic_load_explicit(&hash_count, memory_order_relaxed); }
