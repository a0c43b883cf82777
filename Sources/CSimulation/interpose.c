// Functions of the C library, as fibers see them. Each is named after its manual page.
#include "internal.h"

#include <arpa/inet.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/personality.h>
#include <sys/eventfd.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#define MOST_DESCRIPTORS 65536
#define NANOSECONDS 1000000000ll

struct descriptor {
    int owner;
    bool is_open, is_stream, is_bound, has_error, is_signals;
    int error;
    /// In host order; 0 where there is none.
    uint32_t local_address, peer_address;
    uint16_t local_port, peer_port;
    /// The world's end of a signalfd, and of a connection that was begun last.
    int signal_peer, dialled_peer;
    char *path;
};

static struct descriptor table[MOST_DESCRIPTORS];
static bool kept[MOST_DESCRIPTORS];
static uint16_t next_port;

void csim_descriptors_begin(void) { next_port = 40000; }

static struct descriptor *of(int number) {
    return number >= 0 && number < MOST_DESCRIPTORS ? &table[number] : NULL;
}

/// Notes a descriptor that a fiber has opened.
static int opened(int number) {
    struct descriptor *entry = of(number);
    if (!entry || !csim_in_fiber()) return number;
    free(entry->path);
    *entry = (struct descriptor){.owner = csim_owner(), .is_open = true, .signal_peer = -1};
    return number;
}

static void forget(int number) {
    struct descriptor *entry = of(number);
    if (!entry || !entry->is_open) return;
    if (entry->is_signals && entry->signal_peer >= 0) csim_syscall(SYS_close, entry->signal_peer);
    free(entry->path);
    *entry = (struct descriptor){.owner = -1, .signal_peer = -1};
}

void csim_keep(int descriptor) {
    if (descriptor >= 0 && descriptor < MOST_DESCRIPTORS) kept[descriptor] = true;
}

int csim_sockets(int owner) {
    int count = 0;
    for (int number = 0; number < MOST_DESCRIPTORS; number++)
        count += table[number].is_open && table[number].is_stream && table[number].owner == owner;
    return count;
}

void csim_kill(int owner) {
    csim_kill_fibers(owner);
    int nothing = (int)csim_syscall(SYS_openat, AT_FDCWD, "/dev/null", O_RDWR | O_CLOEXEC, 0);
    for (int number = 0; number < MOST_DESCRIPTORS; number++) {
        if (!table[number].is_open || table[number].owner != owner) continue;
        // The number stays taken: objects that nobody lets go of any more still hold it.
        csim_syscall(SYS_dup3, nothing, number, O_CLOEXEC);
        forget(number);
    }
    csim_syscall(SYS_close, nothing);
}

int csim_failure(const char *name, const char *path, int64_t count) {
    if (!csim_in_fiber() || !csim.world.fail) return 0;
    return csim.world.fail(csim.world.context, name, path ? path : "", count);
}

static const char *path_of(int number) {
    struct descriptor *entry = of(number);
    return entry && entry->is_open && entry->path ? entry->path : "";
}

static bool is_file(int number) { return path_of(number)[0] != 0; }

#define FAIL_IF_WANTED(name, path, count, result)                     \
    do {                                                              \
        int error = csim_failure(name, path, (int64_t)(count));       \
        if (error) {                                                  \
            errno = error;                                            \
            return result;                                            \
        }                                                             \
    } while (0)

/// Waits as long as the disk takes to sync.
///
/// A fiber must not wait while it holds a lock: others would find it held by their own thread. Reads
/// and writes are made under the lock of an object's name, syncs are not.
static void wait_for_disk(const char *path) {
    if (!csim_in_fiber() || !csim.world.delay || !path[0] || strstr(path, ".sqlite")) return;
    int64_t delay = csim.world.delay(csim.world.context, path);
    if (delay > 0) csim_sleep_until(csim.now + delay);
}

// MARK: Time

int64_t csim_processor_time(void) {
    struct timespec time;
    csim_syscall(SYS_clock_gettime, CLOCK_THREAD_CPUTIME_ID, &time);
    return time.tv_sec * NANOSECONDS + time.tv_nsec;
}

static bool is_simulated(void) { return csim.is_active && csim_on_thread; }

static int64_t wall(void) { return csim.now + csim.wall_offset; }

int clock_gettime(clockid_t clock, struct timespec *time) {
    if (!is_simulated() || clock == CLOCK_PROCESS_CPUTIME_ID || clock == CLOCK_THREAD_CPUTIME_ID)
        return (int)csim_syscall(SYS_clock_gettime, clock, time);
    // A little, so that what waits for the clock to go on gets there.
    if (csim_in_fiber()) csim.now += 50;
    bool is_wall = clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE;
    int64_t now = is_wall ? wall() : csim.now;
    time->tv_sec = now / NANOSECONDS;
    time->tv_nsec = now % NANOSECONDS;
    return 0;
}

int gettimeofday(struct timeval *restrict time, void *restrict zone) {
    if (!is_simulated()) return (int)csim_syscall(SYS_gettimeofday, time, zone);
    time->tv_sec = wall() / NANOSECONDS;
    time->tv_usec = wall() % NANOSECONDS / 1000;
    return 0;
}

time_t time(time_t *result) {
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    if (result) *result = now.tv_sec;
    return now.tv_sec;
}

// The program that is simulated takes no processor time: what this one takes differs from run to run,
// and the daemon fetches less ahead on a busy processor.
int getrusage(__rusage_who_t who, struct rusage *usage) {
    if (!is_simulated()) return (int)csim_syscall(SYS_getrusage, who, usage);
    memset(usage, 0, sizeof *usage);
    return 0;
}

int nanosleep(const struct timespec *wanted, struct timespec *left) {
    if (!csim_in_fiber()) return (int)csim_syscall(SYS_nanosleep, wanted, left);
    csim_sleep_until(csim.now + wanted->tv_sec * NANOSECONDS + wanted->tv_nsec);
    return 0;
}

int usleep(useconds_t microseconds) {
    struct timespec wanted = {microseconds / 1000000, microseconds % 1000000 * 1000};
    return nanosleep(&wanted, NULL);
}

unsigned sleep(unsigned seconds) {
    struct timespec wanted = {seconds, 0};
    return nanosleep(&wanted, NULL) ? seconds : 0;
}

// MARK: Names

#define RESOLUTION (20 * NANOSECONDS / 1000)

typedef int resolve_function(const char *, const char *, const struct addrinfo *,
                             struct addrinfo **);

/// The world has addresses and no names: a name is not found after 20 ms. Nothing is asked outside.
int getaddrinfo(const char *name, const char *service, const struct addrinfo *hints,
                struct addrinfo **found) {
    static resolve_function *real;
    if (!real) real = (resolve_function *)dlsym(RTLD_NEXT, "getaddrinfo");
    struct in6_addr address;
    bool is_name = name && inet_pton(AF_INET, name, &address) != 1
        && inet_pton(AF_INET6, name, &address) != 1;
    if (!csim_in_fiber() || !is_name) return real(name, service, hints, found);
    csim_sleep_until(csim.now + RESOLUTION);
    return EAI_NONAME;
}

// MARK: Randomness

uint64_t csim_random(void) {
    csim.random ^= csim.random << 13;
    csim.random ^= csim.random >> 7;
    csim.random ^= csim.random << 17;
    return csim.random * 0x2545F4914F6CDD1Dull;
}

static void fill(void *buffer, size_t count) {
    unsigned char *bytes = buffer;
    for (size_t index = 0; index < count; index++) bytes[index] = (unsigned char)(csim_random() >> 32);
}

ssize_t getrandom(void *buffer, size_t count, unsigned flags) {
    if (!is_simulated()) return csim_syscall(SYS_getrandom, buffer, count, flags);
    fill(buffer, count);
    return (ssize_t)count;
}

/// Swift's SystemRandomNumberGenerator asks the kernel without the C library's getrandom.
long syscall(long number, ...) {
    long arguments[6];
    va_list rest;
    va_start(rest, number);
    for (int index = 0; index < 6; index++) arguments[index] = va_arg(rest, long);
    va_end(rest);
    if (number == SYS_getrandom && is_simulated()) {
        fill((void *)arguments[0], (size_t)arguments[1]);
        return arguments[1];
    }
    return csim_call(number, arguments[0], arguments[1], arguments[2], arguments[3], arguments[4],
                     arguments[5]);
}

// MARK: Threads

extern char __executable_start, etext;

typedef int create_function(pthread_t *, const pthread_attr_t *, void *(*)(void *), void *);
typedef int join_function(pthread_t, void **);
typedef int detach_function(pthread_t);

/// Whether code lies in libcurl, whose only threads resolve names.
static bool is_libcurl(const char *code) {
    Dl_info found;
    return dladdr(code, &found) && found.dli_fname && strstr(found.dli_fname, "libcurl");
}

/// Whether a thread begins detached. Those of Dispatch do, which a static program contains; the
/// daemon detaches its own after their start.
static bool is_detached(const pthread_attr_t *attributes) {
    int state = PTHREAD_CREATE_JOINABLE;
    if (attributes) pthread_attr_getdetachstate(attributes, &state);
    return state == PTHREAD_CREATE_DETACHED;
}

int pthread_create(pthread_t *made, const pthread_attr_t *attributes, void *(*body)(void *),
                   void *argument) {
    const char *caller = __builtin_return_address(0);
    bool is_ours = caller >= &__executable_start && caller < &etext && !is_detached(attributes);
    if (!csim_in_fiber() || !(is_ours || is_libcurl(caller))) {
        static create_function *real;
        if (!real) real = (create_function *)dlsym(RTLD_NEXT, "pthread_create");
        return real(made, attributes, body, argument);
    }
    int error = csim_failure("pthread_create", "", 0);
    if (error) return error;
    struct fiber *fiber = csim_make_fiber(csim_owner(), body, argument);
    if (!fiber) return EAGAIN;
    *made = (pthread_t)fiber;
    return 0;
}

int pthread_join(pthread_t joined, void **result) {
    if (!csim_in_fiber() || !csim_is_fiber((void *)joined)) {
        static join_function *real;
        if (!real) real = (join_function *)dlsym(RTLD_NEXT, "pthread_join");
        return real(joined, result);
    }
    csim_join((void *)joined);
    if (result) *result = NULL;
    return 0;
}

int pthread_detach(pthread_t detached) {
    if (!csim_in_fiber() || !csim_is_fiber((void *)detached)) {
        static detach_function *real;
        if (!real) real = (detach_function *)dlsym(RTLD_NEXT, "pthread_detach");
        return real(detached);
    }
    return 0;
}

int pthread_sigmask(int how, const sigset_t *set, sigset_t *former) {
    if (csim_in_fiber()) {
        if (former) sigemptyset(former);
        return 0;
    }
    return csim_syscall(SYS_rt_sigprocmask, how, set, former, 8) ? errno : 0;
}

// MARK: Waiting

int csim_real_poll(struct pollfd *descriptors, nfds_t count, int timeout) {
    struct timespec limit = {timeout / 1000, timeout % 1000 * 1000000};
    return (int)csim_syscall(SYS_ppoll, descriptors, count, timeout < 0 ? NULL : &limit, NULL, 8);
}

static int64_t deadline_of(int timeout) {
    return timeout < 0 ? INT64_MAX : csim.now + timeout * 1000000ll;
}

int poll(struct pollfd *descriptors, nfds_t count, int timeout) {
    if (!csim_in_fiber() || timeout == 0) return csim_real_poll(descriptors, count, timeout);
    int64_t deadline = deadline_of(timeout);
    for (;;) {
        csim_wait_descriptors(descriptors, (int)count, deadline);
        int ready = csim_real_poll(descriptors, count, 0);
        if (ready || csim.now >= deadline) return ready;
    }
}

static int real_epoll_wait(int epoll, struct epoll_event *events, int most, int timeout) {
    return (int)csim_syscall(SYS_epoll_pwait, epoll, events, most, timeout, NULL, 8);
}

static int compare_events(const void *left, const void *right) {
    uint64_t first = ((const struct epoll_event *)left)->data.u64;
    uint64_t second = ((const struct epoll_event *)right)->data.u64;
    return first < second ? -1 : first > second;
}

// Events in the order of their data: the kernel's order depends on more than the run.
int epoll_wait(int epoll, struct epoll_event *events, int most, int timeout) {
    if (!csim_in_fiber()) return real_epoll_wait(epoll, events, most, timeout);
    int64_t deadline = deadline_of(timeout);
    for (;;) {
        struct pollfd waited = {.fd = epoll, .events = POLLIN};
        csim_wait_descriptors(&waited, 1, deadline);
        int ready = real_epoll_wait(epoll, events, most, 0);
        if (ready > 1) qsort(events, (size_t)ready, sizeof *events, compare_events);
        if (ready || csim.now >= deadline) return ready;
    }
}

int epoll_create1(int flags) {
    FAIL_IF_WANTED("epoll_create1", "", 0, -1);
    return opened((int)csim_syscall(SYS_epoll_create1, flags));
}

int eventfd(unsigned value, int flags) {
    FAIL_IF_WANTED("eventfd", "", 0, -1);
    return opened((int)csim_syscall(SYS_eventfd2, value, flags));
}

int signalfd(int number, const sigset_t *set, int flags) {
    if (!csim_in_fiber()) return (int)csim_syscall(SYS_signalfd4, number, set, 8, flags);
    int ends[2];
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, ends)) return -1;
    opened(ends[0]);
    table[ends[0]].is_signals = true;
    table[ends[0]].signal_peer = ends[1];
    table[ends[1]] = (struct descriptor){.owner = -1, .signal_peer = -1};
    return ends[0];
}

void csim_signal(int owner, int number) {
    struct signalfd_siginfo what = {.ssi_signo = (uint32_t)number};
    for (int index = 0; index < MOST_DESCRIPTORS; index++)
        if (table[index].is_open && table[index].is_signals && table[index].owner == owner)
            (void)!write(table[index].signal_peer, &what, sizeof what);
}

// MARK: Sockets

int socket(int domain, int type, int protocol) {
    if (!csim_in_fiber()) return (int)csim_syscall(SYS_socket, domain, type, protocol);
    FAIL_IF_WANTED("socket", "", domain, -1);
    bool is_stream = (type & 0xF) == SOCK_STREAM && domain == AF_INET;
    if (!is_stream) {
        errno = EAFNOSUPPORT;
        return -1;
    }
    int number = opened((int)csim_syscall(SYS_socket, AF_UNIX, type, 0));
    if (number >= 0) table[number].is_stream = true;
    return number;
}

int socketpair(int domain, int type, int protocol, int ends[2]) {
    if (csim_syscall(SYS_socketpair, domain, type, protocol, ends)) return -1;
    opened(ends[0]);
    opened(ends[1]);
    return 0;
}

static socklen_t listener_name(struct sockaddr_un *name, uint16_t port) {
    memset(name, 0, sizeof *name);
    name->sun_family = AF_UNIX;
    int count = snprintf(name->sun_path + 1, sizeof name->sun_path - 1, "sluice-simulation-%d-%u",
                         (int)getpid(), port);
    return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)count);
}

int bind(int number, const struct sockaddr *address, socklen_t length) {
    struct descriptor *entry = of(number);
    if (!csim_in_fiber() || !entry || !entry->is_stream || address->sa_family != AF_INET)
        return (int)csim_syscall(SYS_bind, number, address, length);
    const struct sockaddr_in *wanted = (const void *)address;
    uint16_t port = ntohs(wanted->sin_port);
    if (!port) port = next_port++;
    for (int other = 0; other < MOST_DESCRIPTORS; other++) {
        // Listeners that share a port (SO_REUSEPORT) share one queue here.
        struct descriptor *first = &table[other];
        if (!first->is_open || !first->is_bound || first->local_port != port
            || first->owner != csim_owner())
            continue;
        if (csim_syscall(SYS_dup3, other, number, O_CLOEXEC) < 0) return -1;
        entry->local_address = first->local_address;
        entry->local_port = port;
        return 0;
    }
    struct sockaddr_un name;
    socklen_t count = listener_name(&name, port);
    if (csim_syscall(SYS_bind, number, &name, count)) return -1;
    entry->local_address = ntohl(wanted->sin_addr.s_addr);
    entry->local_port = port;
    entry->is_bound = true;
    return 0;
}

static void describe(uint32_t address, uint16_t port, struct sockaddr *result, socklen_t *length) {
    struct sockaddr_in made = {.sin_family = AF_INET, .sin_port = htons(port),
                               .sin_addr.s_addr = htonl(address)};
    socklen_t count = *length < sizeof made ? *length : (socklen_t)sizeof made;
    memcpy(result, &made, count);
    *length = sizeof made;
}

int accept4(int listener, struct sockaddr *restrict address, socklen_t *restrict length, int flags) {
    struct descriptor *entry = of(listener);
    if (!csim_in_fiber() || !entry || !entry->is_stream)
        return (int)csim_syscall(SYS_accept4, listener, address, length, flags);
    FAIL_IF_WANTED("accept4", "", 0, -1);
    int number = opened((int)csim_syscall(SYS_accept4, listener, NULL, NULL, flags));
    if (number < 0) return -1;
    struct descriptor *made = &table[number];
    made->is_stream = true;
    made->local_address = entry->local_address;
    made->local_port = entry->local_port;
    made->peer_address = INADDR_LOOPBACK;
    made->peer_port = next_port++;
    if (address) describe(made->peer_address, made->peer_port, address, length);
    return number;
}

int accept(int listener, struct sockaddr *restrict address, socklen_t *restrict length) {
    return accept4(listener, address, length, 0);
}

int getsockname(int number, struct sockaddr *restrict address, socklen_t *restrict length) {
    struct descriptor *entry = of(number);
    if (!csim_in_fiber() || !entry || !entry->is_stream)
        return (int)csim_syscall(SYS_getsockname, number, address, length);
    describe(entry->local_address, entry->local_port, address, length);
    return 0;
}

int getpeername(int number, struct sockaddr *restrict address, socklen_t *restrict length) {
    struct descriptor *entry = of(number);
    if (!csim_in_fiber() || !entry || !entry->is_stream)
        return (int)csim_syscall(SYS_getpeername, number, address, length);
    describe(entry->peer_address, entry->peer_port, address, length);
    return 0;
}

int setsockopt(int number, int level, int option, const void *value, socklen_t length) {
    struct descriptor *entry = of(number);
    if (csim_in_fiber() && entry && entry->is_stream && (level != SOL_SOCKET || option == SO_REUSEPORT))
        return 0;
    return (int)csim_syscall(SYS_setsockopt, number, level, option, value, length);
}

int getsockopt(int number, int level, int option, void *restrict value, socklen_t *restrict length) {
    struct descriptor *entry = of(number);
    if (csim_in_fiber() && entry && entry->is_stream && level == SOL_SOCKET && option == SO_ERROR
        && entry->has_error) {
        *(int *)value = entry->error;
        return 0;
    }
    return (int)csim_syscall(SYS_getsockopt, number, level, option, value, length);
}

/// Fills what a stream takes, so that it is not writable until the other end reads.
static void fill_stream(int number) {
    char filler[4096] = {0};
    while (send(number, filler, sizeof filler, MSG_DONTWAIT | MSG_NOSIGNAL) > 0) {}
}

int connect(int number, const struct sockaddr *address, socklen_t length) {
    struct descriptor *entry = of(number);
    if (!csim_in_fiber() || !entry || !entry->is_stream || address->sa_family != AF_INET)
        return (int)csim_syscall(SYS_connect, number, address, length);
    const struct sockaddr_in *wanted = (const void *)address;
    int ends[2];
    if (csim_syscall(SYS_socketpair, AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, ends)) return -1;
    csim_keep(ends[1]);
    // The stream takes the socket's place under its number.
    if (csim_syscall(SYS_dup3, ends[0], number, O_CLOEXEC) < 0) return -1;
    csim_syscall(SYS_close, ends[0]);
    int least = 4096;
    csim_syscall(SYS_setsockopt, number, SOL_SOCKET, SO_SNDBUF, &least, sizeof least);
    fill_stream(number);
    entry->peer_address = ntohl(wanted->sin_addr.s_addr);
    entry->peer_port = ntohs(wanted->sin_port);
    entry->local_address = INADDR_LOOPBACK;
    entry->local_port = next_port++;
    entry->dialled_peer = ends[1];
    int error = csim.world.connect
        ? csim.world.connect(csim.world.context, entry->peer_address, entry->peer_port, ends[1], number)
        : ECONNREFUSED;
    errno = error ? error : EINPROGRESS;
    if (error) csim_syscall(SYS_close, ends[1]);
    return -1;
}

static void drain(int peer) {
    char buffer[8192];
    while (recv(peer, buffer, sizeof buffer, MSG_DONTWAIT) > 0) {}
}

/// Whether a descriptor still belongs to the connection whose other end is `peer`: its number may have
/// been given to another one since.
static bool is_end_of(int peer, int descriptor) {
    struct descriptor *entry = of(descriptor);
    return entry && entry->is_open && entry->is_stream && entry->dialled_peer == peer;
}

void csim_connected(int peer, int descriptor) {
    int usual = 256 << 10;
    if (is_end_of(peer, descriptor))
        csim_syscall(SYS_setsockopt, descriptor, SOL_SOCKET, SO_SNDBUF, &usual, sizeof usual);
    csim_syscall(SYS_setsockopt, peer, SOL_SOCKET, SO_SNDBUF, &usual, sizeof usual);
    drain(peer);
}

void csim_refused(int peer, int descriptor, int error) {
    if (!is_end_of(peer, descriptor)) return;
    table[descriptor].has_error = true;
    table[descriptor].error = error;
}

/// A socket of the world that listens at a port, or is connected to the listener there.
static int world_socket(uint16_t port, bool listens) {
    int number = (int)csim_syscall(SYS_socket, AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (number < 0) return -1;
    csim_keep(number);
    struct sockaddr_un name;
    socklen_t count = listener_name(&name, port);
    long failed = csim_syscall(listens ? SYS_bind : SYS_connect, number, &name, count);
    if (!failed && listens) failed = csim_syscall(SYS_listen, number, SOMAXCONN);
    if (!failed) return number;
    int error = errno;
    csim_syscall(SYS_close, number);
    errno = error;
    return -1;
}

int csim_listen(uint16_t port) { return world_socket(port, true); }

int csim_inherit(int listener, uint16_t port) {
    int number = opened((int)csim_syscall(SYS_fcntl, listener, F_DUPFD_CLOEXEC, 0));
    if (number < 0) return -1;
    struct descriptor *made = &table[number];
    made->is_stream = true;
    made->local_address = INADDR_LOOPBACK;
    made->local_port = port;
    return number;
}

int csim_dial(uint16_t port) { return world_socket(port, false); }

// MARK: Files

/// Places that tell of this machine, which a simulated one has not.
static bool is_hidden(const char *path) {
    return !strncmp(path, "/proc/", 6) || !strncmp(path, "/sys/", 5);
}

static int open_file(int folder, const char *path, int flags, mode_t mode) {
    if (csim_in_fiber()) {
        if (is_hidden(path)) {
            errno = ENOENT;
            return -1;
        }
        bool writes = (flags & O_ACCMODE) != O_RDONLY;
        FAIL_IF_WANTED(writes ? "open for writing" : "open", path, 0, -1);
        struct stat known;
        bool is_new = (flags & O_CREAT) && (flags & O_TMPFILE) != O_TMPFILE
            && fstatat(folder, path, &known, 0) != 0;
        if (is_new) csim_disk_made(path);
        if ((flags & O_TRUNC) && !is_new) {
            int former = (int)csim_syscall(SYS_openat, folder, path, O_RDWR | O_CLOEXEC, 0);
            if (former >= 0) {
                csim_disk_resizes(former, 0);
                csim_syscall(SYS_close, former);
            }
        }
    }
    int number = opened((int)csim_syscall(SYS_openat, folder, path, flags, mode));
    if (number >= 0 && csim_in_fiber()) table[number].path = strdup(path);
    return number;
}

#define MODE_OF(flags)                                          \
    mode_t mode = 0;                                            \
    if ((flags) & (O_CREAT | O_TMPFILE)) {                      \
        va_list rest;                                           \
        va_start(rest, flags);                                  \
        mode = (mode_t)va_arg(rest, int);                       \
        va_end(rest);                                           \
    }

int open(const char *path, int flags, ...) {
    MODE_OF(flags)
    return open_file(AT_FDCWD, path, flags, mode);
}

int open64(const char *path, int flags, ...) {
    MODE_OF(flags)
    return open_file(AT_FDCWD, path, flags, mode);
}

int openat(int folder, const char *path, int flags, ...) {
    MODE_OF(flags)
    return open_file(folder, path, flags, mode);
}

int close(int number) {
    if (is_simulated()) forget(number);
    return (int)csim_syscall(SYS_close, number);
}

/// A descriptor that stands for the same as another.
static int doubled(int made, int number) {
    if (made < 0 || !csim_in_fiber()) return made;
    struct descriptor former = table[number];
    opened(made);
    table[made].is_stream = former.is_stream;
    table[made].local_address = former.local_address;
    table[made].local_port = former.local_port;
    table[made].peer_address = former.peer_address;
    table[made].peer_port = former.peer_port;
    table[made].path = former.path ? strdup(former.path) : NULL;
    return made;
}

int dup(int number) { return doubled((int)csim_syscall(SYS_dup, number), number); }

int fcntl(int number, int command, ...) {
    va_list rest;
    va_start(rest, command);
    void *argument = va_arg(rest, void *);
    va_end(rest);
    int result = (int)csim_syscall(SYS_fcntl, number, command, argument);
    return command == F_DUPFD || command == F_DUPFD_CLOEXEC ? doubled(result, number) : result;
}

int fcntl64(int number, int command, ...) {
    va_list rest;
    va_start(rest, command);
    void *argument = va_arg(rest, void *);
    va_end(rest);
    return fcntl(number, command, argument);
}

/// Gives a file that was written the world's time.
static void stamp(int number) {
    struct timespec now = {wall() / NANOSECONDS, wall() % NANOSECONDS};
    struct timespec times[2] = {now, now};
    csim_syscall(SYS_utimensat, number, NULL, times, 0);
}

static ssize_t write_at(int number, const void *bytes, size_t count, off_t offset) {
    if (csim_in_fiber() && is_file(number)) {
        FAIL_IF_WANTED("write", path_of(number), count, -1);
        if (!csim_disk_takes(number, offset, (int64_t)count)) {
            errno = ENOSPC;
            return -1;
        }
        csim_disk_writes(number, offset, (int64_t)count);
    }
    ssize_t written = csim_syscall(SYS_pwrite64, number, bytes, count, offset);
    if (written > 0 && csim_in_fiber() && is_file(number)) stamp(number);
    return written;
}

ssize_t pwrite(int number, const void *bytes, size_t count, off_t offset) {
    return write_at(number, bytes, count, offset);
}

ssize_t pwrite64(int number, const void *bytes, size_t count, off_t offset) {
    return write_at(number, bytes, count, offset);
}

ssize_t write(int number, const void *bytes, size_t count) {
    if (csim_in_fiber() && is_file(number)) {
        FAIL_IF_WANTED("write", path_of(number), count, -1);
        csim_disk_writes(number, csim_syscall(SYS_lseek, number, 0, SEEK_CUR), (int64_t)count);
    }
    ssize_t written = csim_syscall(SYS_write, number, bytes, count);
    if (written > 0 && csim_in_fiber() && is_file(number)) stamp(number);
    return written;
}

ssize_t pread(int number, void *bytes, size_t count, off_t offset) {
    if (csim_in_fiber() && is_file(number)) FAIL_IF_WANTED("read", path_of(number), count, -1);
    return csim_syscall(SYS_pread64, number, bytes, count, offset);
}

ssize_t pread64(int number, void *bytes, size_t count, off_t offset) {
    return pread(number, bytes, count, offset);
}

ssize_t sendfile(int to, int from, off_t *offset, size_t count) {
    if (csim_in_fiber()) FAIL_IF_WANTED("sendfile", path_of(from), count, -1);
    return csim_syscall(SYS_sendfile, to, from, offset, count);
}

int ftruncate(int number, off_t size) {
    if (csim_in_fiber() && is_file(number)) {
        FAIL_IF_WANTED("ftruncate", path_of(number), size, -1);
        csim_disk_resizes(number, size);
    }
    return (int)csim_syscall(SYS_ftruncate, number, size);
}

int ftruncate64(int number, off_t size) { return ftruncate(number, size); }

int fallocate(int number, int mode, off_t offset, off_t length) {
    if (csim_in_fiber() && is_file(number)) {
        FAIL_IF_WANTED("fallocate", path_of(number), length, -1);
        if (mode & 0x02)
            csim_disk_writes(number, offset, length);
        else if (!(mode & 0x01))
            csim_disk_resizes(number, offset + length);
    }
    return (int)csim_syscall(SYS_fallocate, number, mode, offset, length);
}

static int sync_file(int number, long call) {
    if (csim_in_fiber()) {
        wait_for_disk(path_of(number));
        FAIL_IF_WANTED("fsync", path_of(number), 0, -1);
        csim_disk_synced(number, call == SYS_syncfs);
        return 0;
    }
    return (int)csim_syscall(call, number);
}

int fsync(int number) { return sync_file(number, SYS_fsync); }
int fdatasync(int number) { return sync_file(number, SYS_fdatasync); }
int syncfs(int number) { return sync_file(number, SYS_syncfs); }

int sync_file_range(int number, off_t offset, off_t length, unsigned flags) {
    if (csim_in_fiber()) return 0;
    return (int)csim_syscall(SYS_sync_file_range, number, offset, length, flags);
}

int rename(const char *from, const char *to) {
    if (csim_in_fiber()) {
        FAIL_IF_WANTED("rename", from, 0, -1);
        csim_disk_renames(from, to, false);
    }
    return (int)csim_syscall(SYS_renameat2, AT_FDCWD, from, AT_FDCWD, to, 0);
}

int renameat2(int from_folder, const char *from, int to_folder, const char *to, unsigned flags) {
    if (csim_in_fiber()) {
        FAIL_IF_WANTED("rename", from, 0, -1);
        csim_disk_renames(from, to, flags & 2);
    }
    return (int)csim_syscall(SYS_renameat2, from_folder, from, to_folder, to, flags);
}

int unlink(const char *path) {
    if (csim_in_fiber()) {
        FAIL_IF_WANTED("unlink", path, 0, -1);
        csim_disk_removes(path);
    }
    return (int)csim_syscall(SYS_unlinkat, AT_FDCWD, path, 0);
}

int mkdir(const char *path, mode_t mode) {
    if (csim_in_fiber()) {
        FAIL_IF_WANTED("mkdir", path, 0, -1);
        struct stat known;
        if (stat(path, &known)) csim_disk_made(path);
    }
    return (int)csim_syscall(SYS_mkdirat, AT_FDCWD, path, mode);
}

int link(const char *from, const char *to) {
    if (csim_in_fiber()) {
        FAIL_IF_WANTED("link", to, 0, -1);
        csim_disk_made(to);
    }
    return (int)csim_syscall(SYS_linkat, AT_FDCWD, from, AT_FDCWD, to, 0);
}

int statvfs(const char *restrict path, struct statvfs *restrict result) {
    int64_t free_bytes = csim_in_fiber() ? csim_disk_free() : -1;
    if (free_bytes < 0) {
        static int (*real)(const char *, struct statvfs *);
        if (!real) real = (int (*)(const char *, struct statvfs *))dlsym(RTLD_NEXT, "statvfs");
        return real(path, result);
    }
    memset(result, 0, sizeof *result);
    result->f_bsize = result->f_frsize = 4096;
    result->f_blocks = 1 << 28;
    result->f_bfree = result->f_bavail = (fsblkcnt_t)(free_bytes / 4096);
    return 0;
}

int malloc_trim(size_t pad) {
    (void)pad;
    return 0;
}

void csim_fix_addresses(void) { personality(ADDR_NO_RANDOMIZE); }
