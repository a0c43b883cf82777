#include "internal.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <ucontext.h>

#define STACK_BYTES (8u << 20)
#define MOST_FIBERS 4096

enum wait_kind { RUNNABLE, WAITING_DESCRIPTORS, WAITING_FIBER, SLEEPING, ENDED };

struct fiber {
    ucontext_t context;
    void *stack;
    void *(*body)(void *);
    void *argument;
    int owner;
    enum wait_kind kind;
    int64_t deadline;
    struct pollfd descriptors[8];
    int descriptor_count;
    struct fiber *joined;
    int saved_errno;
};

static struct fiber *fibers[MOST_FIBERS];
static int fiber_count;
static struct fiber *current;
static ucontext_t world_context;
static int64_t longest_run;
static uint64_t resumptions;

struct csim_state csim;
__thread bool csim_on_thread;

bool csim_in_fiber(void) { return csim.is_active && csim_on_thread && current != NULL; }

int csim_owner(void) { return current ? current->owner : -1; }

int64_t csim_now(void) { return csim.now; }

void csim_set_now(int64_t monotonic) {
    if (monotonic > csim.now) csim.now = monotonic;
}

void csim_shift_wall(int64_t nanoseconds) { csim.wall_offset += nanoseconds; }

void csim_begin(struct csim_world world, int64_t monotonic, int64_t wall, uint64_t seed) {
    csim.world = world;
    csim.now = monotonic;
    csim.wall_offset = wall - monotonic;
    csim.random = seed ? seed : 1;
    csim_on_thread = true;
    csim_descriptors_begin();
    csim_tasks_begin();
    csim.is_active = true;
}

void csim_end(void) { csim.is_active = false; }

static void give_up_turn(enum wait_kind kind, int64_t deadline) {
    struct fiber *self = current;
    self->kind = kind;
    self->deadline = deadline;
    self->saved_errno = errno;
    swapcontext(&self->context, &world_context);
    errno = self->saved_errno;
}

static void start(unsigned high, unsigned low) {
    struct fiber *self = (struct fiber *)(((uintptr_t)high << 32) | low);
    self->body(self->argument);
    self->kind = ENDED;
    swapcontext(&self->context, &world_context);
    abort();
}

struct fiber *csim_make_fiber(int owner, void *(*body)(void *), void *argument) {
    if (fiber_count == MOST_FIBERS) return NULL;
    struct fiber *made = calloc(1, sizeof *made);
    if (!made) return NULL;
    made->stack = mmap(NULL, STACK_BYTES, PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_STACK, -1, 0);
    if (made->stack == MAP_FAILED) {
        free(made);
        return NULL;
    }
    made->owner = owner;
    made->body = body;
    made->argument = argument;
    made->kind = RUNNABLE;
    getcontext(&made->context);
    made->context.uc_stack.ss_sp = made->stack;
    made->context.uc_stack.ss_size = STACK_BYTES;
    made->context.uc_link = NULL;
    uintptr_t self = (uintptr_t)made;
    makecontext(&made->context, (void (*)(void))start, 2, (unsigned)(self >> 32), (unsigned)self);
    fibers[fiber_count++] = made;
    return made;
}

struct body {
    void (*run)(void *);
    void *argument;
};

static void *run_body(void *raw) {
    struct body body = *(struct body *)raw;
    free(raw);
    body.run(body.argument);
    return NULL;
}

void csim_spawn(int owner, void (*run)(void *), void *argument) {
    struct body *body = malloc(sizeof *body);
    body->run = run;
    body->argument = argument;
    if (!csim_make_fiber(owner, run_body, body)) abort();
}

static bool is_ready(struct fiber *fiber, short seen) {
    switch (fiber->kind) {
    case RUNNABLE: return true;
    case WAITING_DESCRIPTORS: return seen || fiber->deadline <= csim.now;
    case WAITING_FIBER: return fiber->joined->kind == ENDED;
    case SLEEPING: return fiber->deadline <= csim.now;
    case ENDED: return false;
    }
    return false;
}

int csim_run_one(uint64_t choice) {
    static struct pollfd all[MOST_FIBERS * 2];
    static int first[MOST_FIBERS];
    nfds_t count = 0;
    for (int index = 0; index < fiber_count; index++) {
        struct fiber *fiber = fibers[index];
        first[index] = (int)count;
        if (fiber->kind != WAITING_DESCRIPTORS) continue;
        for (int which = 0; which < fiber->descriptor_count; which++)
            all[count++] = fiber->descriptors[which];
    }
    if (count) csim_real_poll(all, count, 0);
    static struct fiber *ready[MOST_FIBERS];
    int ready_count = 0;
    for (int index = 0; index < fiber_count; index++) {
        struct fiber *fiber = fibers[index];
        short seen = 0;
        if (fiber->kind == WAITING_DESCRIPTORS)
            for (int which = 0; which < fiber->descriptor_count; which++)
                seen |= all[first[index] + which].revents;
        if (is_ready(fiber, seen)) ready[ready_count++] = fiber;
    }
    if (!ready_count) return 0;
    struct fiber *chosen = ready[choice % (uint64_t)ready_count];
    chosen->kind = RUNNABLE;
    current = chosen;
    resumptions++;
    int64_t before = csim_processor_time();
    swapcontext(&world_context, &chosen->context);
    int64_t took = csim_processor_time() - before;
    current = NULL;
    if (took > longest_run) longest_run = took;
    if (chosen->kind == ENDED) {
        munmap(chosen->stack, STACK_BYTES);
        chosen->stack = NULL;
    }
    return ready_count;
}

int64_t csim_next_deadline(void) {
    int64_t least = INT64_MAX;
    for (int index = 0; index < fiber_count; index++) {
        struct fiber *fiber = fibers[index];
        if ((fiber->kind == WAITING_DESCRIPTORS || fiber->kind == SLEEPING) && fiber->deadline < least)
            least = fiber->deadline;
    }
    return least;
}

int csim_fibers(int owner) {
    int count = 0;
    for (int index = 0; index < fiber_count; index++)
        count += fibers[index]->owner == owner && fibers[index]->kind != ENDED;
    return count;
}

void csim_kill_fibers(int owner) {
    for (int index = 0; index < fiber_count; index++) {
        struct fiber *fiber = fibers[index];
        // The stack stays: what lies on it may be referred to from elsewhere.
        if (fiber->owner == owner) fiber->kind = ENDED;
    }
}

int64_t csim_longest_run(void) { return longest_run; }

uint64_t csim_resumptions(void) { return resumptions; }

// What fibers wait with.

int csim_wait_descriptors(const struct pollfd *descriptors, int count, int64_t deadline) {
    if (count > 8) count = 8;
    memcpy(current->descriptors, descriptors, sizeof *descriptors * (size_t)count);
    current->descriptor_count = count;
    give_up_turn(WAITING_DESCRIPTORS, deadline);
    return 0;
}

void csim_sleep_until(int64_t deadline) { give_up_turn(SLEEPING, deadline); }

bool csim_is_fiber(const void *candidate) {
    for (int index = 0; index < fiber_count; index++)
        if (fibers[index] == candidate) return true;
    return false;
}

void csim_join(void *joined) {
    current->joined = joined;
    if (current->joined->kind != ENDED) give_up_turn(WAITING_FIBER, INT64_MAX);
}
