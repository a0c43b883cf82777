// Tells the thread sanitizer about the slow path of Swift's Mutex.
//
// Mutex (Synchronization) takes an uncontended lock with an atomic exchange that is inlined into
// the program, where the sanitizer sees it. A contended lock goes through futex(2) inside
// libswiftSynchronization.so, which is not instrumented: the sanitizer misses that the lock
// changed hands and reports whatever it guards as a race. Preloaded (ld.so(8)), this library stands
// before the two functions of the slow path and reports the hand-over; nothing is suppressed.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdint.h>
#include <stdlib.h>

// The sanitizer's own interface; missing in programs without it.
__attribute__((weak)) void __tsan_acquire(void *address);
__attribute__((weak)) void __tsan_release(void *address);

#define SWIFT __attribute__((swiftcall))
#define SELF __attribute__((swift_context))

typedef SWIFT void (*lock_slow)(uint32_t thread, SELF void *handle);
typedef SWIFT void (*unlock_slow)(SELF void *handle);

static void *find(const char *name) {
    void *found = dlsym(RTLD_NEXT, name);
    if (!found) abort();
    return found;
}

// Synchronization._MutexHandle._lockSlow(Swift.UInt32) -> ()
SWIFT void hooked_lock(uint32_t thread, SELF void *handle)
    __asm__("$s15Synchronization12_MutexHandleV9_lockSlowyys6UInt32VF");
SWIFT void hooked_lock(uint32_t thread, SELF void *handle) {
    static lock_slow real;
    if (!real) real = (lock_slow)find("$s15Synchronization12_MutexHandleV9_lockSlowyys6UInt32VF");
    real(thread, handle);
    if (__tsan_acquire) __tsan_acquire(handle);
}

// Synchronization._MutexHandle._unlockSlow() -> ()
SWIFT void hooked_unlock(SELF void *handle)
    __asm__("$s15Synchronization12_MutexHandleV11_unlockSlowyyF");
SWIFT void hooked_unlock(SELF void *handle) {
    static unlock_slow real;
    if (!real) real = (unlock_slow)find("$s15Synchronization12_MutexHandleV11_unlockSlowyyF");
    if (__tsan_release) __tsan_release(handle);
    real(handle);
}
