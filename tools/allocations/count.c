// Counts calls of malloc and its kin in the program it is preloaded into: LD_PRELOAD=count.so program.
// The program asks for the count by dlsym(postern_allocation_count). With POSTERN_ALLOCATIONS_FILE=file the count is kept in
// that file, as eight bytes, where another program can read it. glibc only: __libc_* are its own entry points.
#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

extern void *__libc_malloc(size_t);
extern void *__libc_calloc(size_t, size_t);
extern void *__libc_realloc(void *, size_t);
extern void *__libc_memalign(size_t, size_t);

static atomic_uint_fast64_t own;
static atomic_uint_fast64_t *count = &own;

static void note(void) { atomic_fetch_add_explicit(count, 1, memory_order_relaxed); }

uint64_t postern_allocation_count(void) { return atomic_load_explicit(count, memory_order_relaxed); }

__attribute__((constructor)) static void map(void) {
    const char *path = getenv("POSTERN_ALLOCATIONS_FILE");
    int file = path ? open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600) : -1;
    if (file < 0) return;
    if (ftruncate(file, sizeof own) == 0) {
        void *mapped = mmap(NULL, sizeof own, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
        if (mapped != MAP_FAILED) count = mapped;
    }
    close(file);
}

void *malloc(size_t size) {
    note();
    return __libc_malloc(size);
}

void *calloc(size_t members, size_t size) {
    note();
    return __libc_calloc(members, size);
}

void *realloc(void *memory, size_t size) {
    note();
    return __libc_realloc(memory, size);
}

void *memalign(size_t alignment, size_t size) {
    note();
    return __libc_memalign(alignment, size);
}

void *aligned_alloc(size_t alignment, size_t size) { return memalign(alignment, size); }

int posix_memalign(void **memory, size_t alignment, size_t size) {
    *memory = memalign(alignment, size);
    return *memory == NULL ? ENOMEM : 0;
}
