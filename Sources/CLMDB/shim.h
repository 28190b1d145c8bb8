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
