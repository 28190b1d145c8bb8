// OpenSSL's TLS half. The macros of OpenSSL become functions for Swift, whose names begin with "tls_".

#include <openssl/bio.h>
#include <openssl/err.h>
#include <openssl/ocsp.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>

static const uint64_t tls_options =
    SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_COMPRESSION | SSL_OP_NO_TICKET | SSL_OP_CIPHER_SERVER_PREFERENCE;

static inline void tls_CTX_set_mode(SSL_CTX *context, long mode) { SSL_CTX_set_mode(context, mode); }
static inline void tls_CTX_set_session_cache_mode(SSL_CTX *context, long mode) {
    SSL_CTX_set_session_cache_mode(context, mode);
}
static inline int tls_CTX_set_min_proto_version(SSL_CTX *context, int version) {
    return (int)SSL_CTX_set_min_proto_version(context, version);
}
static inline int tls_CTX_set_max_proto_version(SSL_CTX *context, int version) {
    return (int)SSL_CTX_set_max_proto_version(context, version);
}
static inline void tls_CTX_set_max_cert_list(SSL_CTX *context, long byte_count) {
    SSL_CTX_set_max_cert_list(context, byte_count);
}
static inline int tls_CTX_set1_groups_list(SSL_CTX *context, const char *list) {
    return (int)SSL_CTX_set1_groups_list(context, list);
}
static inline int tls_CTX_set1_sigalgs_list(SSL_CTX *context, const char *list) {
    return (int)SSL_CTX_set1_sigalgs_list(context, list);
}
static inline int tls_CTX_add1_chain_cert(SSL_CTX *context, X509 *certificate) {
    return (int)SSL_CTX_add1_chain_cert(context, certificate);
}
static inline void tls_set_msg_callback_arg(SSL *session, void *argument) {
    SSL_set_msg_callback_arg(session, argument);
}
static inline int tls_set_host_name(SSL *session, const char *name) {
    return (int)SSL_set_tlsext_host_name(session, name);
}
static inline STACK_OF(X509) *tls_get_verified_chain(const SSL *session) { return SSL_get0_verified_chain(session); }

// STACK_OF(…) is a type of its own for each element, and its functions are macros.
static inline int tls_X509_count(const STACK_OF(X509) *stack) { return sk_X509_num(stack); }
static inline X509 *tls_X509_at(const STACK_OF(X509) *stack, int index) { return sk_X509_value(stack, index); }
static inline int tls_NAME_count(const GENERAL_NAMES *names) { return sk_GENERAL_NAME_num(names); }
static inline GENERAL_NAME *tls_NAME_at(const GENERAL_NAMES *names, int index) {
    return sk_GENERAL_NAME_value(names, index);
}

static inline EVP_PKEY *tls_generate_p256(void) { return EVP_EC_gen("P-256"); }
