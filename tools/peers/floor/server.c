// The floor: the least that a lookup over a socket can cost. Its threads share nothing but the store, each with an epoll of
// its own. A lookup is protobuf-c and one LMDB get, with no authorization, no deadline, no limits, no log and no checksum.
// Prints its port; ends by itself after the seconds it is given.
//   server DIRECTORY THREADS SECONDS
#define _GNU_SOURCE
#include "lookup.pb-c.h"
#include "shape.h"
#include <errno.h>
#include <lmdb.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

enum { threads_max = 256, buffer_size = 65536, reply_size_max = header_size + 8 + record_size };

struct connection {
    int socket;
    size_t read, answered, sent;  // `sent` bytes of the `answered` ones are with the kernel
    uint8_t input[buffer_size], output[buffer_size];
};

static int pollers[threads_max];
static _Thread_local int poller;
static MDB_env *environment;
static MDB_dbi users;
static _Thread_local MDB_txn *snapshot;

// Messages live until their frame is answered. To allocate is to move an offset forward; the next frame starts again at 0.
static _Thread_local uint8_t arena[4096];
static _Thread_local size_t arena_used;

static void *arena_allocate(void *unused, size_t size) {
    (void)unused;
    size = (size + 15) & ~(size_t)15;
    if (size > sizeof arena - arena_used) return NULL;
    arena_used += size;
    return arena + arena_used - size;
}

static void arena_free(void *unused, void *pointer) { (void)unused, (void)pointer; }

static ProtobufCAllocator arena_allocator = {arena_allocate, arena_free, NULL};

static void lmdb(int result, const char *what) {
    if (result == MDB_SUCCESS) return;
    fprintf(stderr, "%s: %s\n", what, mdb_strerror(result));
    exit(1);
}

static size_t write_key(char *to, const char *of_tenant, const char *uid) {
    size_t tenant_size = strlen(of_tenant) + 1, size = strlen(uid);
    memcpy(to, of_tenant, tenant_size);
    memcpy(to + tenant_size, uid, size);
    return tenant_size + size;
}

static void fill_store(const char *directory) {
    lmdb(mdb_env_create(&environment), "mdb_env_create");
    lmdb(mdb_env_set_mapsize(environment, 1 << 30), "mdb_env_set_mapsize");
    lmdb(mdb_env_set_maxdbs(environment, 1), "mdb_env_set_maxdbs");
    lmdb(mdb_env_open(environment, directory, MDB_NOTLS, 0600), directory);
    MDB_txn *filling;
    lmdb(mdb_txn_begin(environment, NULL, 0, &filling), "mdb_txn_begin");
    lmdb(mdb_dbi_open(filling, "users", MDB_CREATE, &users), "mdb_dbi_open");
    for (unsigned index = 0; index < user_count; index++) {
        char uid[uid_size + 1], key[64], record[record_size];
        write_uid(uid, index);
        memset(record, 'a' + index % 26, sizeof record);
        memcpy(record, uid, uid_size);
        MDB_val stored_key = {write_key(key, tenant, uid), key}, value = {sizeof record, record};
        lmdb(mdb_put(filling, users, &stored_key, &value, MDB_APPEND), "mdb_put");
    }
    lmdb(mdb_txn_commit(filling), "mdb_txn_commit");
}

// Appends the reply to the output, which has room for it. Returns 0 if the peer's message is not a request.
static int answer(struct connection *connection, struct header header, const uint8_t *data) {
    arena_used = 0;
    Peers__GetRequest *request = peers__get_request__unpack(&arena_allocator, header.data_length, data);
    char key[128];
    if (!request || strlen(request->tenant) + strlen(request->uid) >= sizeof key - 1) return 0;
    MDB_val stored_key = {write_key(key, request->tenant, request->uid), key}, value;
    lmdb(mdb_txn_renew(snapshot), "mdb_txn_renew");
    Peers__GetReply reply = PEERS__GET_REPLY__INIT;
    if (mdb_get(snapshot, users, &stored_key, &value) == MDB_SUCCESS) {
        reply.user = (ProtobufCBinaryData){value.mv_size, value.mv_data};
    }
    uint8_t *output = connection->output + connection->answered;
    uint32_t size = peers__get_reply__pack(&reply, output + header_size);
    mdb_txn_reset(snapshot);
    write_header(output, (struct header){size, header.stream, response_frame, 0});
    connection->answered += header_size + size;
    return 1;
}

// Answers every whole frame while there is room for a reply, and keeps the rest. Returns 0 if the peer broke the protocol.
static int answer_all(struct connection *connection) {
    size_t offset = 0;
    while (connection->read - offset >= header_size && buffer_size - connection->answered >= reply_size_max) {
        struct header header = read_header(connection->input + offset);
        if (header.type != request_frame || header.data_length > buffer_size - header_size) return 0;
        if (connection->read - offset - header_size < header.data_length) break;
        if (!answer(connection, header, connection->input + offset + header_size)) return 0;
        offset += header_size + header.data_length;
    }
    memmove(connection->input, connection->input + offset, connection->read - offset);
    connection->read -= offset;
    return 1;
}

static void wait_for(int poller, struct connection *connection, int operation, uint32_t events) {
    struct epoll_event event = {.events = events, .data.ptr = connection};
    require(epoll_ctl(poller, operation, connection->socket, &event) == 0, "epoll_ctl");
}

// Returns 1 if everything is sent, 0 if the socket is full, -1 if the peer is gone.
static int flush(struct connection *connection) {
    size_t unsent = connection->answered - connection->sent;
    if (unsent == 0) return 1;
    ssize_t written = send(connection->socket, connection->output + connection->sent, unsent, MSG_NOSIGNAL);
    if (written < 0) return errno == EAGAIN ? 0 : -1;
    connection->sent += written;
    if (connection->sent < connection->answered) return 0;
    connection->answered = connection->sent = 0;
    return 1;
}

// Handles one event. Nothing is read while replies wait for a full socket. Returns 0 if the connection is to be closed.
static int serve(struct connection *connection, uint32_t events) {
    if (events & EPOLLOUT) {
        int flushed = flush(connection);
        if (flushed <= 0) return flushed == 0;
        wait_for(poller, connection, EPOLL_CTL_MOD, EPOLLIN);
    } else {
        size_t room = buffer_size - connection->read;
        ssize_t count = recv(connection->socket, connection->input + connection->read, room, 0);
        if (count <= 0) return count < 0 && errno == EAGAIN;
        connection->read += count;
    }
    size_t before;
    do {
        before = connection->read;
        if (!answer_all(connection)) return 0;
        int flushed = flush(connection);
        if (flushed < 0) return 0;
        if (flushed == 0) {
            wait_for(poller, connection, EPOLL_CTL_MOD, EPOLLOUT);
            return 1;
        }
    } while (connection->read < before && connection->read >= header_size);
    return 1;
}

static int listen_on_loopback(void) {
    int listener = socket(AF_INET, SOCK_STREAM, 0);
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t size = sizeof address;
    require(bind(listener, (struct sockaddr *)&address, size) == 0 && listen(listener, 1024) == 0, "listen");
    getsockname(listener, (struct sockaddr *)&address, &size);
    printf("%d\n", ntohs(address.sin_port));
    fflush(stdout);
    return listener;
}

// Gives each new connection to the next thread in turn.
static void accept_one(int listener, int thread_count) {
    static unsigned accepted;
    int socket = accept4(listener, NULL, NULL, SOCK_NONBLOCK), on = 1;
    if (socket < 0) return;
    setsockopt(socket, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    struct connection *connection = calloc(1, sizeof *connection);
    require(connection != NULL, "calloc");
    connection->socket = socket;
    wait_for(pollers[accepted++ % thread_count], connection, EPOLL_CTL_ADD, EPOLLIN);
}

_Noreturn static void *answer_for_ever(void *own_poller) {
    poller = *(int *)own_poller;
    lmdb(mdb_txn_begin(environment, NULL, MDB_RDONLY, &snapshot), "mdb_txn_begin");
    mdb_txn_reset(snapshot);
    struct epoll_event events[256];
    for (;;) {
        int count = epoll_wait(poller, events, 256, -1);
        for (int index = 0; index < count; index++) {
            struct connection *connection = events[index].data.ptr;
            if (serve(connection, events[index].events)) continue;
            close(connection->socket);
            free(connection);
        }
    }
}

int main(int argument_count, char **arguments) {
    int thread_count = argument_count == 4 ? atoi(arguments[2]) : 0;
    if (thread_count < 1 || thread_count > threads_max) {
        return fprintf(stderr, "usage: server DIRECTORY THREADS SECONDS\n"), 2;
    }
    alarm(atoi(arguments[3]));
    fill_store(arguments[1]);
    for (int index = 0; index < thread_count; index++) {
        pthread_t thread;
        pollers[index] = epoll_create1(0);
        require(pthread_create(&thread, NULL, answer_for_ever, &pollers[index]) == 0, "pthread_create");
    }
    int listener = listen_on_loopback();
    for (;;) accept_one(listener, thread_count);
}
