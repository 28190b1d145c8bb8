// Counts the sign-ins that a server can do: for each a request by TCP, an argon2id hash, an RSA-2048 signature, a synced
// commit of its session, and the answer. There are no look-ups, checks, encoding or metrics.
//   durable DIRECTORY THREADS CONNECTIONS SECONDS
// prints what the others print and, as a fourth number, the CPU seconds beside the hashes of one sign-in.
//
// A loop reads, THREADS threads hash and sign, and one thread commits all that is ready and answers, because LMDB has one
// writer. The clients are a process of their own, each with one request on its way; their time does not count.
#include "hash.h"
#include "records.h"
#include "stopwatch.h"
#include <arpa/inet.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/wait.h>

// As many users as tools/bench seeds in posternd: a deeper tree has more pages to write in each commit.
enum { users_at_first = 100000 };
enum { threads_max = 64, connections_max = 256, request_size = 200, answer_size = 1400 };

// Connections whose sign-in waits for its next step. There are never more than all connections.
struct queue {
    pthread_mutex_t lock;
    pthread_cond_t filled;
    int count, items[connections_max];
};

static struct queue arrived = {.lock = PTHREAD_MUTEX_INITIALIZER, .filled = PTHREAD_COND_INITIALIZER};
static struct queue proved = {.lock = PTHREAD_MUTEX_INITIALIZER, .filled = PTHREAD_COND_INITIALIZER};
static EVP_PKEY *key;
static volatile long done;
static double hash_seconds[threads_max];

static void add(struct queue *queue, int connection) {
    pthread_mutex_lock(&queue->lock);
    queue->items[queue->count++] = connection;
    pthread_cond_signal(&queue->filled);
    pthread_mutex_unlock(&queue->lock);
}

// Waits until the queue has an item, and takes all items, but at most `most`.
static int take(struct queue *queue, int *items, int most) {
    pthread_mutex_lock(&queue->lock);
    while (queue->count == 0) pthread_cond_wait(&queue->filled, &queue->lock);
    int count = queue->count < most ? queue->count : most;
    memcpy(items, queue->items, count * sizeof *items);
    queue->count -= count;
    memmove(queue->items, queue->items + count, queue->count * sizeof *items);
    pthread_mutex_unlock(&queue->lock);
    return count;
}

static void *prove(void *seconds) {
    EVP_PKEY_CTX *signing = new_signing(key);
    for (int connection;;) {
        take(&arrived, &connection, 1);
        double start = seconds_of(CLOCK_THREAD_CPUTIME_ID);
        hash();
        *(double *)seconds += seconds_of(CLOCK_THREAD_CPUTIME_ID) - start;
        sign(signing);
        add(&proved, connection);
    }
    return NULL;
}

static void *commit(void *unused) {
    char answer[answer_size] = {0};
    for (int connections[connections_max];;) {
        int count = take(&proved, connections, connections_max);
        commit_batch(count);
        for (int index = 0; index < count; index++)
            require(write(connections[index], answer, sizeof answer) == sizeof answer);
        done += count;
    }
    return unused;
}

static void read_all(int connection, char *bytes, ssize_t size) {
    for (ssize_t count = 0; count < size;) {
        ssize_t more = read(connection, bytes + count, size - count);
        if (more <= 0) _exit(0);
        count += more;
    }
}

static int watch_all(const int *connections, int count) {
    int poll = epoll_create1(0);
    for (int index = 0; index < count; index++) {
        struct epoll_event event = {.events = EPOLLIN, .data.fd = connections[index]};
        require(epoll_ctl(poll, EPOLL_CTL_ADD, connections[index], &event) == 0);
    }
    return poll;
}

// Each connection sends its next request when it was answered, until the server is gone.
static void run_clients(const int *connections, int count) {
    char request[request_size] = {0}, answer[answer_size];
    for (int index = 0; index < count; index++) require(write(connections[index], request, sizeof request) > 0);
    struct epoll_event events[connections_max];
    for (int poll = watch_all(connections, count);;) {
        int ready = epoll_wait(poll, events, connections_max, -1);
        for (int index = 0; index < ready; index++) {
            read_all(events[index].data.fd, answer, sizeof answer);
            if (write(events[index].data.fd, request, sizeof request) < 0) _exit(0);
        }
    }
}

static void connect_all(int *near, int *far, int count) {
    int listener = socket(AF_INET, SOCK_STREAM, 0), one = 1;
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t size = sizeof address;
    require(bind(listener, (struct sockaddr *)&address, size) == 0 && listen(listener, count) == 0);
    require(getsockname(listener, (struct sockaddr *)&address, &size) == 0);
    for (int index = 0; index < count; index++) {
        near[index] = socket(AF_INET, SOCK_STREAM, 0);
        require(connect(near[index], (struct sockaddr *)&address, size) == 0);
        far[index] = accept(listener, NULL, NULL);
        require(far[index] >= 0);
        setsockopt(near[index], IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
        setsockopt(far[index], IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    }
    close(listener);
}

static void start_threads(int count) {
    pthread_t thread;
    for (int index = 0; index < count; index++)
        require(pthread_create(&thread, NULL, prove, &hash_seconds[index]) == 0);
    require(pthread_create(&thread, NULL, commit, NULL) == 0);
}

// When all hashes have ended: one that is half done would count as something else.
static void report_beside_hashes(const struct stopwatch *watch, int threads, long taken) {
    while (done < taken) usleep(1000);
    double seconds = seconds_of(CLOCK_PROCESS_CPUTIME_ID) - watch->cpu_start;
    for (int index = 0; index < threads; index++) seconds -= hash_seconds[index];
    printf("%.9f\n", seconds / taken);
}

int main(int argument_count, char **arguments) {
    int threads = argument_count == 5 ? atoi(arguments[2]) : 0, count = argument_count == 5 ? atoi(arguments[3]) : 0;
    if (threads < 1 || threads > threads_max || count < 1 || count > connections_max)
        return fprintf(stderr, "usage: durable DIRECTORY THREADS CONNECTIONS SECONDS\n"), 2;
    if (sodium_init() < 0) return 1;
    key = EVP_RSA_gen(2048);
    open_records(arguments[1]);
    commit_batch(users_at_first);
    int near[connections_max], far[connections_max];
    connect_all(near, far, count);
    pid_t clients = fork();
    require(clients >= 0);
    if (clients == 0) {
        for (int index = 0; index < count; index++) close(far[index]);
        run_clients(near, count);
    }
    for (int index = 0; index < count; index++) close(near[index]);
    start_threads(threads);
    char request[request_size];
    struct epoll_event events[connections_max];
    struct stopwatch watch = start_stopwatch(atof(arguments[4]));
    long taken = 0;
    for (int poll = watch_all(far, count); is_running(&watch);) {
        int ready = epoll_wait(poll, events, connections_max, 100);
        for (int index = 0; index < ready; index++) {
            read_all(events[index].data.fd, request, sizeof request);
            add(&arrived, events[index].data.fd);
            taken++;
        }
    }
    report(&watch, done);
    report_beside_hashes(&watch, threads, taken);
    kill(clients, SIGKILL);
    waitpid(clients, NULL, 0);
    fflush(stdout);
    _exit(0);
}
