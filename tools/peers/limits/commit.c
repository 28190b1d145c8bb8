// How many durable LMDB writes there can be: BATCH records per commit, each of them a put of 600 bytes (a user) and
// one of 28 (an index entry that names it). Every commit is synced, as Postern's are.
//   commit DIRECTORY BATCH SECONDS
#include "stopwatch.h"
#include <inttypes.h>
#include <lmdb.h>
#include <stdlib.h>
#include <string.h>

static MDB_env *environment;
static MDB_dbi users, index_of_users;
static uint64_t seed = 20240229;

static void lmdb(int result, const char *what) {
    if (result == MDB_SUCCESS) return;
    fprintf(stderr, "%s: %s\n", what, mdb_strerror(result));
    exit(1);
}

static uint64_t next_random(void) {
    seed ^= seed << 13, seed ^= seed >> 7, seed ^= seed << 17;  // xorshift64 (Marsaglia 2003)
    return seed;
}

static void put(MDB_txn *transaction, MDB_dbi table, const char *prefix, char *value, size_t size) {
    char key[64];
    int length = snprintf(key, sizeof key, "%s%016" PRIx64 "%012" PRIx64, prefix, next_random(), next_random() >> 16);
    MDB_val stored_key = {length, key}, stored = {size, value};
    lmdb(mdb_put(transaction, table, &stored_key, &stored, 0), "mdb_put");
}

static void commit_batch(int batch) {
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

int main(int argument_count, char **arguments) {
    if (argument_count != 4) return fprintf(stderr, "usage: commit DIRECTORY BATCH SECONDS\n"), 2;
    int batch = atoi(arguments[2]);
    lmdb(mdb_env_create(&environment), "mdb_env_create");
    lmdb(mdb_env_set_mapsize(environment, (size_t)8 << 30), "mdb_env_set_mapsize");
    lmdb(mdb_env_set_maxdbs(environment, 2), "mdb_env_set_maxdbs");
    lmdb(mdb_env_open(environment, arguments[1], MDB_NOTLS, 0600), arguments[1]);
    commit_batch(batch);
    long records = 0;
    struct stopwatch watch = start_stopwatch(atof(arguments[3]));
    for (; is_running(&watch); records += batch) commit_batch(batch);
    report(&watch, records);
}
