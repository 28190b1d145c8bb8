// How many argon2id hashes (19 MiB, t = 2, p = 1; OWASP's first choice) THREADS threads make together.
//   argon2id THREADS SECONDS
#include "stopwatch.h"
#include <pthread.h>
#include <sodium.h>
#include <stdatomic.h>
#include <stdlib.h>

enum { threads_max = 256 };

static atomic_long hashes;
static struct stopwatch watch;

static void *work(void *unused) {
    unsigned char hash[32], salt[crypto_pwhash_SALTBYTES] = {1};
    while (is_running(&watch)) {
        int result = crypto_pwhash(hash, sizeof hash, "correct horse", 13, salt, 2, 19 << 20,
                                   crypto_pwhash_ALG_ARGON2ID13);
        if (result != 0) abort();
        hashes++;
    }
    return unused;
}

int main(int argument_count, char **arguments) {
    int count = argument_count == 3 ? atoi(arguments[1]) : 0;
    if (count < 1 || count > threads_max) return fprintf(stderr, "usage: argon2id THREADS SECONDS\n"), 2;
    if (sodium_init() < 0) return 1;
    pthread_t threads[threads_max];
    watch = start_stopwatch(atof(arguments[2]));
    for (int index = 0; index < count; index++) {
        if (pthread_create(&threads[index], NULL, work, NULL) != 0) abort();
    }
    for (int index = 0; index < count; index++) pthread_join(threads[index], NULL);
    report(&watch, hashes);
}
