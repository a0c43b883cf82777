// Linux calls that Swift's Glibc module does not show, and thin wrappers for those that need
// _GNU_SOURCE or are variadic. Each wrapper has the meaning of the manual page it is named after.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/sendfile.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/timerfd.h>
#include <sys/types.h>

/// sched_getcpu(3), which glibc declares for _GNU_SOURCE only.
int sched_getcpu(void);

/// accept4(2) with SOCK_NONBLOCK | SOCK_CLOEXEC.
int clinux_accept(int listener, struct sockaddr *_Nullable address, socklen_t *_Nullable length);

/// open(2) with O_CLOEXEC added.
int clinux_open(const char *_Nonnull path, int flags, mode_t mode);

/// As clinux_open, with O_NOATIME where that is allowed: reading does not change the file.
int clinux_open_quietly(const char *_Nonnull path, int flags);

/// open(2) with O_TMPFILE: a file without a name in `folder`, for reading and writing.
int clinux_open_unnamed(const char *_Nonnull folder, mode_t mode);

/// fallocate(2), mode 0 with FALLOC_FL_KEEP_SIZE: reserves blocks, leaves the size alone.
int clinux_reserve(int descriptor, off_t offset, off_t length);

/// fallocate(2) with FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE.
int clinux_punch_hole(int descriptor, off_t offset, off_t length);

/// sync_file_range(2) with SYNC_FILE_RANGE_WRITE: starts writeback, does not wait.
int clinux_start_writeback(int descriptor, off_t offset, off_t length);

/// syncfs(2): waits until all of the file system that a file is on is on the disk.
int clinux_sync_file_system(int descriptor);

/// renameat2(2) with RENAME_EXCHANGE: two names change what they stand for, atomically.
int clinux_exchange(const char *_Nonnull one, const char *_Nonnull other);

/// pthread_setname_np(3) on the calling thread; at most 15 bytes are kept.
void clinux_name_thread(const char *_Nonnull name);

/// Blocks every signal in the calling thread (pthread_sigmask(3)), so that threads made from it inherit that.
void clinux_block_all_signals(void);

/// signalfd(2), non-blocking, for the signals whose numbers are given.
int clinux_signal_descriptor(const int *_Nonnull signals, int count);

/// fcntl(2) F_OFD_SETLK: takes an exclusive lock on the whole file, without waiting.
int clinux_lock_exclusive(int descriptor);

/// fcntl(2) F_OFD_GETLK: 1 if another open of the file has a lock on it, else 0; -1 on failure.
int clinux_is_locked(int descriptor);

/// What TCP_INFO (tcp(7)) says of the receiving side of a connection.
struct clinux_receiving {
    /// The smoothed round trip that a receiver sees, in microseconds; 0 without a sample.
    uint32_t round_trip;
    /// The smoothed round trip of what was sent, the handshake included, in microseconds.
    uint32_t sent_round_trip;
    /// Packets with data, those out of order included.
    uint32_t packets;
    /// The size of the data of the largest of them.
    uint32_t packet_size;
    /// Packets that arrived out of order.
    uint32_t out_of_order;
    /// Bytes received, but those behind a gap.
    uint64_t bytes;
};

/// getsockopt(2) with TCP_INFO; fails with a kernel that does not count received bytes.
int clinux_receiving(int descriptor, struct clinux_receiving *_Nonnull receiving);

/// How often the oldest packet that is not acknowledged was sent again, from TCP_INFO (tcp(7)); -1
/// for what is no TCP connection over a single path.
int clinux_retransmissions(int descriptor);

/// fcntl(2) with an integer argument.
int clinux_fcntl(int descriptor, int command, int argument);

/// prlimit(2): sets the soft and the hard limit of another process.
int clinux_limit(pid_t process, int resource, uint64_t most);

/// setsockopt(2) with SO_LINGER {1, 0}: close sends a reset.
int clinux_reset_on_close(int descriptor);

/// What is free for unprivileged users on a file system.
struct clinux_free {
    int64_t bytes;
    /// Files that can still be made; -1 where the file system counts none.
    int64_t files;
};

/// statvfs(3): what is free on the file system of `path`; -1 with errno on failure.
int clinux_free(const char *_Nonnull path, struct clinux_free *_Nonnull free);

/// statfs(2): the type of the file system of `path`, a magic number of 32 bits; -1 with errno on failure.
int64_t clinux_file_system(const char *_Nonnull path);

/// getdents through readdir(3): calls `visit` for every name but . and .. ; -1 with errno on failure.
int clinux_list_folder(const char *_Nonnull path, void *_Nullable context,
                       void (*_Nonnull visit)(void *_Nullable context, const char *_Nonnull name, bool is_folder));

/// getifaddrs(3): calls `visit` for every address of an interface that is up; -1 with errno on failure.
///
/// In C, since Swift sees `struct sockaddr` in two modules as soon as <ifaddrs.h> names it.
int clinux_list_addresses(void *_Nullable context,
                          void (*_Nonnull visit)(void *_Nullable context, const struct sockaddr *_Nonnull address));

/// CRC-32C of bytes, going on from the CRC-32C of those before them; 0 to begin with.
uint32_t clinux_crc32c(uint32_t crc, const void *_Nullable bytes, size_t count);

/// As clinux_crc32c, without the processor's instruction: for other machines, and to test by.
uint32_t clinux_crc32c_software(uint32_t crc, const void *_Nullable bytes, size_t count);

/// The CRC-32C of two stretches in a row, from theirs and the second's length.
uint32_t clinux_crc32c_joined(uint32_t first, uint32_t second, uint64_t second_count);

/// Lets go of the resident pages of program code, of this program and of its libraries, by
/// madvise(2), MADV_DONTNEED: what is run again comes back from the page cache.
void clinux_give_back_code(void);

/// malloc_trim(3): gives free memory of the allocator, of all its arenas, back to the system.
void clinux_give_back_free_memory(void);

/// fflush(3) and ferror(3) on standard output: 0 if all that was printed is written, the errno of the
/// last write, or -1 if an earlier one failed, whose errno nobody kept.
int clinux_finish_output(void);
