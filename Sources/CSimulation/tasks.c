// Jobs of Swift's tasks run on fibers instead of the threads of the concurrency runtime.
#include "internal.h"

typedef __attribute__((swiftcall)) void (*enqueue_function)(void *job);
typedef __attribute__((swiftcall)) void (*enqueue_hook)(void *job, enqueue_function original);

struct executor {
    void *identity;
    uintptr_t implementation;
};

/// Of the concurrency runtime (include/swift/Runtime/Concurrency.h).
extern enqueue_hook swift_task_enqueueGlobal_hook;
extern __attribute__((swiftcall)) void swift_job_run(void *job, struct executor executor);

static void run(void *job) { swift_job_run(job, (struct executor){NULL, 0}); }

static __attribute__((swiftcall)) void enqueue(void *job, enqueue_function original) {
    if (!csim_in_fiber()) return original(job);
    csim_spawn(csim_owner(), run, job);
}

void csim_tasks_begin(void) { swift_task_enqueueGlobal_hook = enqueue; }
