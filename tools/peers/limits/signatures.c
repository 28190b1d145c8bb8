// Counts how often THREADS threads together sign or verify a SHA-256 digest. The key and each thread's context are ready.
//   signatures RSA-2048|P-256 sign|verify THREADS SECONDS
#include "stopwatch.h"
#include <openssl/ec.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/rsa.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

enum { threads_max = 256 };

static EVP_PKEY *key;
static int signs;
static atomic_long done;
static struct stopwatch watch;

static void require(int holds) {
    if (holds) return;
    ERR_print_errors_fp(stderr);
    exit(1);
}

static EVP_PKEY_CTX *context_for(int (*initialize)(EVP_PKEY_CTX *)) {
    EVP_PKEY_CTX *context = EVP_PKEY_CTX_new(key, NULL);
    require(context && initialize(context) == 1 && EVP_PKEY_CTX_set_signature_md(context, EVP_sha256()) == 1);
    return context;
}

static void *work(void *unused) {
    EVP_PKEY_CTX *signing = context_for(EVP_PKEY_sign_init), *verifying = context_for(EVP_PKEY_verify_init);
    unsigned char digest[32] = {1}, signature[256];
    size_t size = sizeof signature;
    require(EVP_PKEY_sign(signing, signature, &size, digest, sizeof digest) == 1);
    long own = 0;
    for (; is_running(&watch); own++) {
        if (signs) {
            size = sizeof signature;
            require(EVP_PKEY_sign(signing, signature, &size, digest, sizeof digest) == 1);
        } else {
            require(EVP_PKEY_verify(verifying, signature, size, digest, sizeof digest) == 1);
        }
    }
    done += own;
    return unused;
}

int main(int argument_count, char **arguments) {
    int count = argument_count == 5 ? atoi(arguments[3]) : 0;
    if (count < 1 || count > threads_max) {
        return fprintf(stderr, "usage: signatures RSA-2048|P-256 sign|verify THREADS SECONDS\n"), 2;
    }
    key = strcmp(arguments[1], "P-256") == 0 ? EVP_EC_gen("P-256") : EVP_RSA_gen(2048);
    require(key != NULL);
    signs = strcmp(arguments[2], "sign") == 0;
    pthread_t threads[threads_max];
    watch = start_stopwatch(atof(arguments[4]));
    for (int index = 0; index < count; index++) require(pthread_create(&threads[index], NULL, work, NULL) == 0);
    for (int index = 0; index < count; index++) pthread_join(threads[index], NULL);
    report(&watch, done);
}
