// How often one thread signs or verifies a SHA-256 digest, the key and its context being ready.
//   signatures RSA-2048|P-256 sign|verify SECONDS
#include "stopwatch.h"
#include <openssl/ec.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/rsa.h>
#include <stdlib.h>
#include <string.h>

static void require(int holds) {
    if (holds) return;
    ERR_print_errors_fp(stderr);
    exit(1);
}

static EVP_PKEY_CTX *context_for(EVP_PKEY *key, int (*initialize)(EVP_PKEY_CTX *)) {
    EVP_PKEY_CTX *context = EVP_PKEY_CTX_new(key, NULL);
    require(context && initialize(context) == 1 && EVP_PKEY_CTX_set_signature_md(context, EVP_sha256()) == 1);
    return context;
}

int main(int argument_count, char **arguments) {
    if (argument_count != 4) return fprintf(stderr, "usage: signatures RSA-2048|P-256 sign|verify SECONDS\n"), 2;
    EVP_PKEY *key = strcmp(arguments[1], "P-256") == 0 ? EVP_EC_gen("P-256") : EVP_RSA_gen(2048);
    require(key != NULL);
    EVP_PKEY_CTX *signing = context_for(key, EVP_PKEY_sign_init), *verifying = context_for(key, EVP_PKEY_verify_init);
    unsigned char digest[32] = {1}, signature[256];
    size_t size = sizeof signature;
    require(EVP_PKEY_sign(signing, signature, &size, digest, sizeof digest) == 1);
    int signs = strcmp(arguments[2], "sign") == 0;
    long operations = 0;
    struct stopwatch watch = start_stopwatch(atof(arguments[3]));
    for (; is_running(&watch); operations++) {
        if (signs) {
            size = sizeof signature;
            require(EVP_PKEY_sign(signing, signature, &size, digest, sizeof digest) == 1);
        } else {
            require(EVP_PKEY_verify(verifying, signature, size, digest, sizeof digest) == 1);
        }
    }
    report(&watch, operations);
}
