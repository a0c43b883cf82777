// A line of one rate, one delay and one queue between two network namespaces.
//
//   loaded-line FAR KBITS DELAY-US QUEUE-BYTES JITTER-US
//
// Makes the tun devices "near0" in this namespace and "far0" in the one at the path FAR. Packets to
// near0 pass a queue that holds QUEUE-BYTES and drops what is more, leave it at KBITS a second, and
// arrive DELAY-US later, half of the line's round trip; packets to far0 are only delayed. With
// JITTER-US each packet towards near0 is late by up to that, in order.
//
// The kernel's own means are not enough: netem, which delays, is missing in many containers, and a
// sender on the same machine stops before the queue of a virtual device is full (TCP small queues).
//
// For each line that it reads, it prints what happened since the last one: bytes and packets towards
// near0, dropped packets, and mean, highest and 99th percentile of the time in the queue in
// microseconds.
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/if.h>
#include <linux/if_tun.h>
#include <poll.h>
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

// Waits are counted by tenths of a millisecond; the last row has all from 2 s on.
enum { PACKET = 2048, ROWS = 1 << 14, WAITS = 20001, WAIT_STEP = 100000 };

struct packet {
    int64_t due;
    int length;
    char bytes[PACKET];
};

// Packets under way in one direction, in the order in which they arrive.
struct way {
    struct packet *rows;
    uint32_t first, count;
    int out;
};

static void fail(const char *what) {
    fprintf(stderr, "loaded-line: %s: %s\n", what, strerror(errno));
    exit(1);
}

static int64_t now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return time.tv_sec * 1000000000LL + time.tv_nsec;
}

static int device(const char *name) {
    struct ifreq request = {.ifr_flags = IFF_TUN | IFF_NO_PI};
    int descriptor = open("/dev/net/tun", O_RDWR | O_NONBLOCK | O_CLOEXEC);
    if (descriptor < 0) fail("/dev/net/tun");
    strncpy(request.ifr_name, name, IFNAMSIZ - 1);
    if (ioctl(descriptor, TUNSETIFF, &request) != 0) fail(name);
    return descriptor;
}

static struct packet *end(struct way *way) {
    return way->count < ROWS ? &way->rows[(way->first + way->count) % ROWS] : NULL;
}

static void deliver(struct way *way, int64_t time) {
    while (way->count > 0 && way->rows[way->first].due <= time) {
        struct packet *packet = &way->rows[way->first];
        // A device that is down or full loses the packet, as a line would.
        if (write(way->out, packet->bytes, packet->length) < 0) {}
        way->first = (way->first + 1) % ROWS;
        way->count--;
    }
}

// The time in microseconds that 99 of 100 packets have waited less than; 0 without packets.
static int64_t percentile(const int64_t *waits, int64_t packets) {
    int64_t rank = packets * 99 / 100, counted = 0;
    if (packets == 0) return 0;
    for (int row = 0; row < WAITS; row++) {
        counted += waits[row];
        if (counted > rank) return (int64_t)(row + 1) * WAIT_STEP / 1000;
    }
    return (int64_t)WAITS * WAIT_STEP / 1000;
}

int main(int count, char **words) {
    if (count != 6) return 64;
    int64_t kbits = atoll(words[2]), delay = atoll(words[3]) * 1000, limit = atoll(words[4]);
    int64_t jitter = atoll(words[5]) * 1000;
    int near = device("near0"), here = open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC);
    int there = open(words[1], O_RDONLY | O_CLOEXEC);
    if (here < 0 || there < 0 || setns(there, CLONE_NEWNET) != 0) fail(words[1]);
    int far = device("far0");
    if (setns(here, CLONE_NEWNET) != 0) fail("setns");
    struct way down = {.out = near}, up = {.out = far};
    down.rows = calloc(ROWS, sizeof(struct packet));
    up.rows = calloc(ROWS, sizeof(struct packet));
    if (!down.rows || !up.rows) fail("memory");
    struct packet lost;
    static int64_t waits[WAITS];
    int64_t free_at = 0, last_due = 0, bytes = 0, packets = 0, drops = 0, waited = 0, longest = 0;
    puts("ready");
    fflush(stdout);
    for (;;) {
        int64_t time = now(), next = INT64_MAX;
        deliver(&down, time);
        deliver(&up, time);
        if (down.count > 0) next = down.rows[down.first].due;
        if (up.count > 0 && up.rows[up.first].due < next) next = up.rows[up.first].due;
        int64_t pause = next == INT64_MAX ? 1000000000 : next - now();
        if (pause < 0) pause = 0;
        struct timespec timeout = {pause / 1000000000, pause % 1000000000};
        struct pollfd polls[] = {{near, POLLIN, 0}, {far, POLLIN, 0}, {0, POLLIN, 0}};
        if (ppoll(polls, 3, &timeout, NULL) < 0 && errno != EINTR) fail("poll");
        for (;;) {
            struct packet *packet = end(&up);
            int length = read(near, packet ? packet->bytes : lost.bytes, PACKET);
            if (length <= 0) break;
            if (!packet) continue;
            packet->due = now() + delay;
            packet->length = length;
            up.count++;
        }
        for (;;) {
            struct packet *packet = end(&down);
            int length = read(far, packet ? packet->bytes : lost.bytes, PACKET);
            if (length <= 0) break;
            time = now();
            if (free_at < time) free_at = time;
            int64_t wait = free_at - time;
            if (!packet || wait / 8000000.0 * kbits + length > limit) {
                drops++;
                continue;
            }
            free_at += length * 8000000LL / kbits;
            packet->due = free_at + delay + (jitter ? random() % jitter : 0);
            if (packet->due < last_due) packet->due = last_due;
            last_due = packet->due;
            packet->length = length;
            down.count++;
            bytes += length;
            packets++;
            waited += wait;
            if (wait > longest) longest = wait;
            int64_t row = wait / WAIT_STEP;
            waits[row < WAITS ? row : WAITS - 1]++;
        }
        if (polls[2].revents) {
            char text[64];
            if (read(0, text, sizeof text) <= 0) return 0;
            printf("%lld %lld %lld %lld %lld %lld\n", (long long)bytes, (long long)packets, (long long)drops,
                   (long long)(packets ? waited / packets / 1000 : 0), (long long)(longest / 1000),
                   (long long)percentile(waits, packets));
            fflush(stdout);
            bytes = packets = drops = waited = longest = 0;
            memset(waits, 0, sizeof waits);
        }
    }
}
