// What the files of this target share.
#pragma once

#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif

#include "CSimulation.h"

#include <poll.h>
#include <sys/types.h>

struct csim_state {
    struct csim_world world;
    bool is_active;
    int64_t now;
    /// What is added to `now` for civil time.
    int64_t wall_offset;
    uint64_t random;
};

extern struct csim_state csim;
extern __thread bool csim_on_thread;

struct fiber;

/// Whether the caller is simulated code.
bool csim_in_fiber(void);
/// Whose fiber runs; -1 for the world.
int csim_owner(void);
struct fiber *csim_make_fiber(int owner, void *(*body)(void *), void *argument);
bool csim_is_fiber(const void *candidate);
void csim_kill_fibers(int owner);
/// Waits until one of at most 8 descriptors may be ready, or the deadline; wakes without cause too.
int csim_wait_descriptors(const struct pollfd *descriptors, int count, int64_t deadline);
void csim_sleep_until(int64_t deadline);
void csim_join(void *fiber);

/// syscall(2) itself, which is one of the functions that are replaced.
long csim_call(long number, long a, long b, long c, long d, long e, long f);
#define csim_syscall(...) csim_syscall_(__VA_ARGS__, 0, 0, 0, 0, 0, 0)
#define csim_syscall_(number, a, b, c, d, e, f, ...) \
    csim_call(number, (long)(a), (long)(b), (long)(c), (long)(d), (long)(e), (long)(f))

int64_t csim_processor_time(void);
int csim_real_poll(struct pollfd *descriptors, nfds_t count, int timeout);

void csim_descriptors_begin(void);
void csim_tasks_begin(void);
uint64_t csim_random(void);

/// The error that the world wants a call to fail with; 0 for none.
int csim_failure(const char *name, const char *path, int64_t count);

// The disk's record of what is not synced; each is called before the change.
void csim_disk_writes(int descriptor, int64_t offset, int64_t count);
void csim_disk_resizes(int descriptor, int64_t size);
void csim_disk_synced(int descriptor, bool whole_system);
void csim_disk_made(const char *path);
void csim_disk_renames(const char *from, const char *to, bool exchange);
void csim_disk_removes(const char *path);
int64_t csim_disk_free(void);
bool csim_disk_takes(int descriptor, int64_t offset, int64_t count);
