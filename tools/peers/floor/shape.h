// The definitions that server and load share: the frame header, the stored users, and the tenant and uids to look up.
#pragma once
#include <arpa/inet.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    user_count = 100000,
    record_size = 370,
    uid_size = 28,
    header_size = 10,  // data length (32 bits), stream id (32), type (8), flags (8), big-endian: ttrpc's
    request_frame = 1,
    response_frame = 2,
};

static const char tenant[] = "acme";

struct header {
    uint32_t data_length, stream;
    uint8_t type, flags;
};

static inline void write_header(uint8_t *to, struct header header) {
    uint32_t words[2] = {htonl(header.data_length), htonl(header.stream)};
    memcpy(to, words, sizeof words);
    to[8] = header.type;
    to[9] = header.flags;
}

static inline struct header read_header(const uint8_t *from) {
    uint32_t words[2];
    memcpy(words, from, sizeof words);
    return (struct header){ntohl(words[0]), ntohl(words[1]), from[8], from[9]};
}

// The uid of user number `index`: 28 characters, as Firebase's are. `to` has room for the terminating zero.
static inline void write_uid(char to[uid_size + 1], unsigned index) {
    snprintf(to, uid_size + 1, "u%0*u", uid_size - 1, index);
}

static inline void require(int holds, const char *what) {
    if (holds) return;
    perror(what);
    exit(1);
}
