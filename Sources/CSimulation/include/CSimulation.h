// The system as the simulated daemon sees it: threads, time, sockets, signals, randomness and files,
// put in the place of the C library's functions of the same names.
//
// A program that links this target has these definitions before those of the C library (ld.so(8)),
// for its own code and for the libraries that it loads: libcurl and SQLite read the simulated clock
// and write to the simulated disk as the daemon does. Until `csim_begin`, and on every other
// thread than the one that called it, each function does what its manual page says.
//
// Everything runs on one thread. What calls pthread_create(3) from this program gets a fiber, which
// runs until it waits (epoll_wait, poll, pthread_join, nanosleep). The world, which is the code
// outside of fibers, decides which one goes on and what time it is.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/epoll.h>

/// Told of what fibers do; each is called while a fiber runs, and must not wait.
struct csim_world {
    void *_Nullable context;
    /// A connection is begun to an address of IPv4. The world keeps `peer`, its end of the stream,
    /// and ends the wait of the other with `csim_connected` or `csim_refused`.
    ///
    /// Returns: 0, or the error that connect(2) fails with at once.
    int (*_Nullable connect)(void *_Nullable context, uint32_t address, uint16_t port, int peer,
                             int descriptor);
    /// The error that a call is to fail with (errno(3)), 0 for none: `name` is the
    /// function's, `path` the file's where it has one.
    int (*_Nullable fail)(void *_Nullable context, const char *_Nonnull name, const char *_Nonnull path,
                          int64_t count);
    /// For how long a sync of a file takes, in nanoseconds: its fiber waits, others run.
    ///
    /// Not asked for files of SQLite, whose locks other fibers may want meanwhile.
    int64_t (*_Nullable delay)(void *_Nullable context, const char *_Nonnull path);
};

/// Begins the simulation on the calling thread, at a time in nanoseconds of CLOCK_MONOTONIC.
void csim_begin(struct csim_world world, int64_t monotonic, int64_t wall, uint64_t seed);

/// Ends it: the functions are the C library's again. Fibers that are left never run again.
void csim_end(void);

/// The time that fibers read, in nanoseconds.
int64_t csim_now(void);
void csim_set_now(int64_t monotonic);

/// Moves the wall clock alone, as settimeofday(2) does.
void csim_shift_wall(int64_t nanoseconds);

/// Makes a fiber that belongs to `owner`, as do those that it makes.
void csim_spawn(int owner, void (*_Nonnull body)(void *_Nullable), void *_Nullable argument);

/// Lets one of the fibers that can go on run until it waits; `choice` says which.
///
/// Returns: how many could; 0 means that none ran.
int csim_run_one(uint64_t choice);

/// The earliest time at which a fiber goes on by itself; INT64_MAX where none does.
int64_t csim_next_deadline(void);

/// How many fibers of an owner have not ended.
int csim_fibers(int owner);

/// Ends all fibers of an owner where they are, and closes what the owner has open, as a kill does.
void csim_kill(int owner);

/// How many sockets of TCP an owner has open.
int csim_sockets(int owner);

/// Delivers a signal to the signalfd(2) of an owner.
void csim_signal(int owner, int number);

/// Ends the wait of a connect(2) that is in progress, unless its descriptor belongs to another one by now.
void csim_connected(int peer, int descriptor);
void csim_refused(int peer, int descriptor, int error);

/// Opens a connection to a listener of the simulated daemon at a loopback port; -1 and errno where none listens.
int csim_dial(uint16_t port);

/// A listener that the world has open and no process closes, as a service manager's; -1 and errno on failure.
int csim_listen(uint16_t port);

/// Gives the running fiber's process a descriptor of such a listener; -1 and errno on failure.
int csim_inherit(int listener, uint16_t port);

/// The longest that a fiber has run without waiting, in nanoseconds of processor time.
int64_t csim_longest_run(void);

/// The number of times that a fiber was resumed.
uint64_t csim_resumptions(void);

/// Real descriptors, for the world, which no kill closes.
void csim_keep(int descriptor);

/// The disk: what has been written and not been synced is lost in part by a power cut.
///
/// Follows the files below `folder`. `csim_power_cut` changes what is there to what the disk might
/// hold after a cut at this moment; the daemon must have been killed before.
void csim_disk_follow(const char *_Nonnull folder);
void csim_power_cut(const char *_Nonnull folder, uint64_t seed);

/// Takes all that was written as being on the disk.
void csim_disk_settle(void);

/// Bytes that statvfs(3) says are free, and that writing takes from.
void csim_disk_set_free(int64_t bytes);

/// personality(2): addresses are the same in each run of the program, from the next execve(2) on.
void csim_fix_addresses(void);

/// Writes what a build with `--enable-code-coverage` has counted, which the exit handlers that are not run
/// would do; nothing in other builds.
void csim_write_profile(void);

/// What mallinfo2(3) says is in use, in bytes.
size_t csim_heap_bytes(void);
