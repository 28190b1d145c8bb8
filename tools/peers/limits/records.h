// Records as a server of accounts writes them: a put of 600 bytes (a user, a session) and one of 28 (an index entry that
// names it). Every commit is synced, as Postern's are.
#pragma once
#include <inttypes.h>
#include <lmdb.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static MDB_env *environment;
static MDB_dbi users, index_of_users;
static uint64_t seed = 20240229;

static inline void lmdb(int result, const char *what) {
    if (result == MDB_SUCCESS) return;
    fprintf(stderr, "%s: %s\n", what, mdb_strerror(result));
    exit(1);
}

static inline uint64_t next_random(void) {
    seed ^= seed << 13, seed ^= seed >> 7, seed ^= seed << 17;  // xorshift64 (Marsaglia 2003)
    return seed;
}

static inline void put(MDB_txn *transaction, MDB_dbi table, const char *prefix, char *value, size_t size) {
    char key[64];
    int length = snprintf(key, sizeof key, "%s%016" PRIx64 "%012" PRIx64, prefix, next_random(), next_random() >> 16);
    MDB_val stored_key = {length, key}, stored = {size, value};
    lmdb(mdb_put(transaction, table, &stored_key, &stored, 0), "mdb_put");
}

static inline void open_records(const char *directory) {
    lmdb(mdb_env_create(&environment), "mdb_env_create");
    lmdb(mdb_env_set_mapsize(environment, (size_t)8 << 30), "mdb_env_set_mapsize");
    lmdb(mdb_env_set_maxdbs(environment, 2), "mdb_env_set_maxdbs");
    lmdb(mdb_env_open(environment, directory, MDB_NOTLS, 0600), directory);
}

static inline void commit_batch(int batch) {
    char user[600], uid[28];
    memset(user, 'u', sizeof user);
    memset(uid, 'i', sizeof uid);
    MDB_txn *transaction;
    lmdb(mdb_txn_begin(environment, NULL, 0, &transaction), "mdb_txn_begin");
    lmdb(mdb_dbi_open(transaction, "users", MDB_CREATE, &users), "mdb_dbi_open");
    lmdb(mdb_dbi_open(transaction, "user_by_email", MDB_CREATE, &index_of_users), "mdb_dbi_open");
    for (int count = 0; count < batch; count++) {
        put(transaction, users, "acme ", user, sizeof user);
        put(transaction, index_of_users, "acme ", uid, sizeof uid);
    }
    lmdb(mdb_txn_commit(transaction), "mdb_txn_commit");
}
