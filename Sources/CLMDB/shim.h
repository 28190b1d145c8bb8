#include <lmdb.h>
#include <stddef.h>
#include <sys/types.h>

/* glibc declares it with _GNU_SOURCE only. */
extern int fallocate(int file, int mode, off_t offset, off_t length);

/* The beginning of LMDB 0.9's `struct MDB_txn` (mdb.c), which lmdb.h does not show: the only place that tells how far
 * a transaction that is not yet committed will make the file. Code that uses it checks it first, see
 * `StoreSpace.knowsNextPage`. */
typedef struct {
    void *parent;
    void *child;
    size_t next_page;
    size_t transaction_id;
} postern_lmdb_transaction_head;

static inline postern_lmdb_transaction_head postern_lmdb_head(MDB_txn *transaction) {
    return *(const postern_lmdb_transaction_head *)transaction;
}

/* Asks the processor for the lines of a value at once. A MAC reads them one after the other, and would wait for memory
 * at each of them. At most one page; never faults. */
static inline void postern_prefetch(const void *value, size_t size) {
    if (size > 4096) size = 4096;
    for (size_t offset = 0; offset < size; offset += 64) __builtin_prefetch((const char *)value + offset);
}
