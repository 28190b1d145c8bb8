// One argon2id hash as sign-ins need it (19 MiB, t = 2, p = 1; OWASP's first choice), and an RSA-2048 signature.
//
// libsodium maps and unmaps the memory of each hash, which costs more than the hash. Each thread keeps its memory here, in
// huge pages where the kernel has them, as posternd does.
#pragma once
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <openssl/evp.h>
#include <openssl/rsa.h>
#include <sodium.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { hash_memory = 19 << 20, huge_page = 2 << 20 };

static _Thread_local void *kept;
static _Thread_local int is_hashing;

static void *map_kept(void) {
    int protection = PROT_READ | PROT_WRITE, flags = MAP_PRIVATE | MAP_ANONYMOUS;
    char *memory = (char *)syscall(SYS_mmap, NULL, hash_memory + 2 * huge_page, protection, flags, -1, 0);
    if (memory == MAP_FAILED) abort();
    memory += huge_page - (uintptr_t)memory % huge_page;
    madvise(memory, hash_memory + huge_page, MADV_HUGEPAGE);
    return memory;
}

// A program's own definitions come before the C library's.
void *mmap(void *address, size_t length, int protection, int flags, int file, off_t offset) {
    if (!is_hashing || length != hash_memory)
        return (void *)syscall(SYS_mmap, address, length, protection, flags, file, offset);
    if (!kept) kept = map_kept();
    return kept;
}

int munmap(void *address, size_t length) {
    return is_hashing && address == kept ? 0 : (int)syscall(SYS_munmap, address, length);
}

static inline void require(int holds) {
    if (!holds) abort();
}

static inline void hash(void) {
    unsigned char tag[32], salt[crypto_pwhash_SALTBYTES] = {1};
    is_hashing = 1;
    require(crypto_pwhash(tag, sizeof tag, "correct horse", 13, salt, 2, hash_memory, crypto_pwhash_ALG_ARGON2ID13) == 0);
    is_hashing = 0;
}

static inline EVP_PKEY_CTX *new_signing(EVP_PKEY *key) {
    EVP_PKEY_CTX *signing = EVP_PKEY_CTX_new(key, NULL);
    require(signing && EVP_PKEY_sign_init(signing) == 1 && EVP_PKEY_CTX_set_signature_md(signing, EVP_sha256()) == 1);
    return signing;
}

static inline void sign(EVP_PKEY_CTX *signing) {
    unsigned char digest[32] = {1}, signature[256];
    size_t size = sizeof signature;
    require(EVP_PKEY_sign(signing, signature, &size, digest, sizeof digest) == 1);
}
