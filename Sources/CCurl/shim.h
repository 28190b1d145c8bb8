// The checks of these macros want literal options; the functions below have the types instead.
#define CURL_DISABLE_TYPECHECK
#include <curl/curl.h>
#include <sys/socket.h>
#include <netinet/in.h>

// curl_easy_setopt and curl_easy_getinfo are variadic, which Swift cannot call: one function per type of argument.

static inline CURLcode postern_curl_set_long(CURL *handle, CURLoption option, long value) {
    return curl_easy_setopt(handle, option, value);
}

static inline CURLcode postern_curl_set_size(CURL *handle, CURLoption option, curl_off_t value) {
    return curl_easy_setopt(handle, option, value);
}

// libcurl copies the string, except for CURLOPT_POSTFIELDS.
static inline CURLcode postern_curl_set_string(CURL *handle, CURLoption option, const char *value) {
    return curl_easy_setopt(handle, option, value);
}

// For the ...DATA options, CURLOPT_ERRORBUFFER and CURLOPT_POSTFIELDS: kept by libcurl until the next reset.
static inline CURLcode postern_curl_set_pointer(CURL *handle, CURLoption option, const void *value) {
    return curl_easy_setopt(handle, option, value);
}

// CURLOPT_HTTPHEADER, CURLOPT_MAIL_RCPT, CURLOPT_RESOLVE: kept by libcurl until the next reset.
static inline CURLcode postern_curl_set_list(CURL *handle, CURLoption option, struct curl_slist *value) {
    return curl_easy_setopt(handle, option, value);
}

// CURLOPT_WRITEFUNCTION, CURLOPT_HEADERFUNCTION, CURLOPT_READFUNCTION.
typedef size_t (*postern_curl_data_callback)(char *bytes, size_t size, size_t count, void *context);

static inline CURLcode postern_curl_set_data_callback(
    CURL *handle, CURLoption option, postern_curl_data_callback callback) {
    return curl_easy_setopt(handle, option, callback);
}

// Asks about each address, 4 or 16 bytes in network order, before a socket for it is made; 0 = do not connect there.
// Only the bytes cross over: to which module `struct sockaddr` belongs depends on what was included first.
typedef int (*postern_curl_open_callback)(void *context, const unsigned char *address, size_t byte_count);

struct postern_curl_opener {
    postern_curl_open_callback may_open;
    void *context;
};

static inline curl_socket_t postern_curl_open_socket(
    void *context, curlsocktype purpose, struct curl_sockaddr *address) {
    const struct postern_curl_opener *opener = (const struct postern_curl_opener *)context;
    const struct sockaddr *raw = &address->addr;
    const unsigned char *bytes = NULL;
    size_t count = 0;
    if (address->family == AF_INET && address->addrlen >= sizeof(struct sockaddr_in)) {
        bytes = (const unsigned char *)&((const struct sockaddr_in *)(const void *)raw)->sin_addr;
        count = 4;
    } else if (address->family == AF_INET6 && address->addrlen >= sizeof(struct sockaddr_in6)) {
        bytes = (const unsigned char *)&((const struct sockaddr_in6 *)(const void *)raw)->sin6_addr;
        count = 16;
    }
    if (purpose != CURLSOCKTYPE_IPCXN || !bytes || !opener->may_open(opener->context, bytes, count))
        return CURL_SOCKET_BAD;
    return socket(address->family, address->socktype | SOCK_CLOEXEC, address->protocol);
}

// `opener` must live until the next reset.
static inline CURLcode postern_curl_set_opener(CURL *handle, const struct postern_curl_opener *opener) {
    CURLcode code = curl_easy_setopt(handle, CURLOPT_OPENSOCKETFUNCTION, postern_curl_open_socket);
    return code != CURLE_OK ? code : curl_easy_setopt(handle, CURLOPT_OPENSOCKETDATA, opener);
}

// Asked before a name is looked up, but not if a connection to its server is open, or CURLOPT_RESOLVE names addresses;
// anything but 0 fails the transfer.
static inline CURLcode postern_curl_set_resolver_start(
    CURL *handle, curl_resolver_start_callback callback, void *context) {
    CURLcode code = curl_easy_setopt(handle, CURLOPT_RESOLVER_START_FUNCTION, callback);
    return code != CURLE_OK ? code : curl_easy_setopt(handle, CURLOPT_RESOLVER_START_DATA, context);
}

// Called about once a second and with every piece; anything but 0 ends the transfer (CURLE_ABORTED_BY_CALLBACK).
static inline CURLcode postern_curl_set_progress(CURL *handle, curl_xferinfo_callback callback, void *context) {
    CURLcode code = curl_easy_setopt(handle, CURLOPT_XFERINFOFUNCTION, callback);
    if (code == CURLE_OK) code = curl_easy_setopt(handle, CURLOPT_XFERINFODATA, context);
    return code != CURLE_OK ? code : curl_easy_setopt(handle, CURLOPT_NOPROGRESS, 0L);
}

static inline CURLcode postern_curl_get_long(CURL *handle, CURLINFO info, long *value) {
    return curl_easy_getinfo(handle, info, value);
}
