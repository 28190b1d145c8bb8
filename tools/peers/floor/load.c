// Closed-loop load for the floor: the next request follows every reply. One thread, epoll.
//   load PORT CONNECTIONS IN_FLIGHT SECONDS      prints: REQUESTS SECONDS
#define _GNU_SOURCE
#include "shape.h"
#include <errno.h>
#include <netinet/tcp.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum {
    in_flight_max = 256,
    request_size = header_size + 2 + sizeof tenant - 1 + 2 + uid_size,
    reply_data_size = 3 + record_size,  // tag, length of two bytes, record
};

struct connection {
    int socket;
    uint32_t next_stream;
    size_t read;
    uint8_t input[65536];
};

static uint64_t seed = 20240229;  // the same users in every run

static unsigned next_user(void) {
    seed ^= seed << 13, seed ^= seed >> 7, seed ^= seed << 17;  // xorshift64 (Marsaglia 2003)
    return seed % user_count;
}

static double now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return time.tv_sec + time.tv_nsec * 1e-9;
}

static void broken(const char *what) {
    fprintf(stderr, "load: %s\n", what);
    exit(1);
}

static uint8_t *write_request(uint8_t *to, uint32_t stream) {
    write_header(to, (struct header){request_size - header_size, stream, request_frame, 0});
    to += header_size;
    *to++ = 1 << 3 | 2, *to++ = sizeof tenant - 1;
    memcpy(to, tenant, sizeof tenant - 1);
    to += sizeof tenant - 1;
    *to++ = 2 << 3 | 2, *to++ = uid_size;
    // As write_uid does, without the price of snprintf.
    memset(to, '0', uid_size);
    to[0] = 'u';
    unsigned user = next_user();
    for (uint8_t *digit = to + uid_size - 1; user > 0; user /= 10) *digit-- = '0' + user % 10;
    return to + uid_size;
}

static void send_requests(struct connection *connection, int count) {
    uint8_t output[in_flight_max * request_size], *end = output;
    for (; count > 0; count--, connection->next_stream += 2) end = write_request(end, connection->next_stream);
    // A closed loop never has more bytes outstanding than a socket holds, so a short write is an error.
    if (send(connection->socket, output, end - output, MSG_NOSIGNAL) != end - output) broken("short write");
}

// Returns the number of whole replies that came.
static int receive(struct connection *connection) {
    size_t room = sizeof connection->input - connection->read, offset = 0;
    ssize_t count = recv(connection->socket, connection->input + connection->read, room, 0);
    if (count < 0 && errno == EAGAIN) return 0;
    if (count <= 0) broken("the server closed a connection");
    connection->read += count;
    int replies = 0;
    while (connection->read - offset >= header_size) {
        struct header header = read_header(connection->input + offset);
        if (header.type != response_frame || header.data_length != reply_data_size) broken("not the reply of a user");
        if (connection->read - offset < header_size + reply_data_size) break;
        offset += header_size + reply_data_size;
        replies++;
    }
    memmove(connection->input, connection->input + offset, connection->read - offset);
    connection->read -= offset;
    return replies;
}

static void connect_to(struct connection *connection, int port) {
    struct sockaddr_in address = {AF_INET, htons(port), {htonl(INADDR_LOOPBACK)}, {0}};
    int on = 1;
    connection->socket = socket(AF_INET, SOCK_STREAM, 0);
    connection->next_stream = 1;
    require(connect(connection->socket, (struct sockaddr *)&address, sizeof address) == 0, "connect");
    setsockopt(connection->socket, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
}

int main(int argument_count, char **arguments) {
    if (argument_count != 5) return fprintf(stderr, "usage: load PORT CONNECTIONS IN_FLIGHT SECONDS\n"), 2;
    int connection_count = atoi(arguments[2]), in_flight = atoi(arguments[3]), poller = epoll_create1(0);
    if (in_flight < 1 || in_flight > in_flight_max || connection_count < 1) broken("a shape it cannot make");
    struct connection *connections = calloc(connection_count, sizeof *connections);
    require(connections != NULL, "calloc");
    for (int index = 0; index < connection_count; index++) {
        struct epoll_event event = {.events = EPOLLIN, .data.ptr = connections + index};
        connect_to(connections + index, atoi(arguments[1]));
        require(epoll_ctl(poller, EPOLL_CTL_ADD, connections[index].socket, &event) == 0, "epoll_ctl");
    }
    double start = now(), end = start + atof(arguments[4]);
    for (int index = 0; index < connection_count; index++) send_requests(connections + index, in_flight);
    long done = 0;
    struct epoll_event events[256];
    while (now() < end) {
        int ready = epoll_wait(poller, events, 256, 100);
        for (int index = 0; index < ready; index++) {
            struct connection *connection = events[index].data.ptr;
            int replies = receive(connection);
            if (replies > 0) send_requests(connection, replies);
            done += replies;
        }
    }
    printf("%ld %.6f\n", done, now() - start);
}
