// Counts the argon2id hashes that THREADS threads make together, alone or with one RSA-2048 signature after each. A hash and
// a signature are what a sign-in needs at least.
//   argon2id hash|sign-in THREADS SECONDS
#include "hash.h"
#include "stopwatch.h"
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

enum { threads_max = 256 };

static atomic_long done;
static int signs;
static EVP_PKEY *key;
static struct stopwatch watch;

static void *work(void *unused) {
    EVP_PKEY_CTX *signing = new_signing(key);
    while (is_running(&watch)) {
        hash();
        if (signs) sign(signing);
        done++;
    }
    return unused;
}

int main(int argument_count, char **arguments) {
    int count = argument_count == 4 ? atoi(arguments[2]) : 0;
    if (count < 1 || count > threads_max) return fprintf(stderr, "usage: argon2id hash|sign-in THREADS SECONDS\n"), 2;
    if (sodium_init() < 0) return 1;
    signs = strcmp(arguments[1], "sign-in") == 0;
    key = EVP_RSA_gen(2048);
    require(key != NULL);
    pthread_t threads[threads_max];
    watch = start_stopwatch(atof(arguments[3]));
    for (int index = 0; index < count; index++) require(pthread_create(&threads[index], NULL, work, NULL) == 0);
    for (int index = 0; index < count; index++) pthread_join(threads[index], NULL);
    report(&watch, done);
}
