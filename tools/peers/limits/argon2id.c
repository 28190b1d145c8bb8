// How many argon2id hashes (19 MiB, t = 2, p = 1; OWASP's first choice) THREADS threads make together, alone or with one
// RSA-2048 signature after each, which is what a sign-in cannot do without.
//   argon2id hash|sign-in THREADS SECONDS
//
// libsodium maps and unmaps the memory of each hash, which costs more than the hash. Each thread keeps its memory here.
#define _GNU_SOURCE
#include "stopwatch.h"
#include <openssl/evp.h>
#include <openssl/rsa.h>
#include <pthread.h>
#include <sodium.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { threads_max = 256, hash_memory = 19 << 20 };

static atomic_long done;
static int signs;
static EVP_PKEY *key;
static struct stopwatch watch;
static _Thread_local void *kept;
static _Thread_local int is_hashing;

// A program's own definitions come before the C library's.
void *mmap(void *address, size_t length, int protection, int flags, int file, off_t offset) {
    if (is_hashing && kept && length == hash_memory) return kept;
    void *memory = (void *)syscall(SYS_mmap, address, length, protection, flags, file, offset);
    if (is_hashing && length == hash_memory) kept = memory;
    return memory;
}

int munmap(void *address, size_t length) {
    return is_hashing && address == kept ? 0 : (int)syscall(SYS_munmap, address, length);
}

static void require(int holds) {
    if (!holds) abort();
}

static void hash(void) {
    unsigned char tag[32], salt[crypto_pwhash_SALTBYTES] = {1};
    is_hashing = 1;
    require(crypto_pwhash(tag, sizeof tag, "correct horse", 13, salt, 2, hash_memory, crypto_pwhash_ALG_ARGON2ID13) == 0);
    is_hashing = 0;
}

static void *work(void *unused) {
    EVP_PKEY_CTX *signing = EVP_PKEY_CTX_new(key, NULL);
    require(signing && EVP_PKEY_sign_init(signing) == 1 && EVP_PKEY_CTX_set_signature_md(signing, EVP_sha256()) == 1);
    while (is_running(&watch)) {
        hash();
        unsigned char digest[32] = {1}, signature[256];
        size_t size = sizeof signature;
        if (signs) require(EVP_PKEY_sign(signing, signature, &size, digest, sizeof digest) == 1);
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
