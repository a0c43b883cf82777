#define _GNU_SOURCE
#include "CLinux.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/vfs.h>
#include <unistd.h>

_Static_assert(sizeof(off_t) == 8, "file offsets must be 64 bits wide");

int clinux_accept(int listener, struct sockaddr *address, socklen_t *length) {
    return accept4(listener, address, length, SOCK_NONBLOCK | SOCK_CLOEXEC);
}

int clinux_open(const char *path, int flags, mode_t mode) {
    return open(path, flags | O_CLOEXEC, mode);
}

int clinux_open_quietly(const char *path, int flags) {
    int descriptor = open(path, flags | O_CLOEXEC | O_NOATIME);
    // Only the file's owner may ask for that (open(2)).
    return descriptor >= 0 || errno != EPERM ? descriptor : clinux_open(path, flags, 0);
}

int clinux_open_unnamed(const char *folder, mode_t mode) {
    return open(folder, O_TMPFILE | O_RDWR | O_CLOEXEC, mode);
}

int clinux_reserve(int descriptor, off_t offset, off_t length) {
    return fallocate(descriptor, FALLOC_FL_KEEP_SIZE, offset, length);
}

int clinux_punch_hole(int descriptor, off_t offset, off_t length) {
    return fallocate(descriptor, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, offset, length);
}

int clinux_start_writeback(int descriptor, off_t offset, off_t length) {
    return sync_file_range(descriptor, offset, length, SYNC_FILE_RANGE_WRITE);
}

int clinux_sync_file_system(int descriptor) {
    return syncfs(descriptor);
}

int clinux_exchange(const char *one, const char *other) {
    return renameat2(AT_FDCWD, one, AT_FDCWD, other, RENAME_EXCHANGE);
}

void clinux_name_thread(const char *name) {
    char kept[16];
    strncpy(kept, name, sizeof kept - 1);
    kept[sizeof kept - 1] = 0;
    pthread_setname_np(pthread_self(), kept);
}

void clinux_block_all_signals(void) {
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, NULL);
}

int clinux_signal_descriptor(const int *signals, int count) {
    sigset_t wanted;
    sigemptyset(&wanted);
    for (int i = 0; i < count; i++) {
        sigaddset(&wanted, signals[i]);
    }
    return signalfd(-1, &wanted, SFD_NONBLOCK | SFD_CLOEXEC);
}

int clinux_lock_exclusive(int descriptor) {
    struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
    return fcntl(descriptor, F_OFD_SETLK, &lock);
}

int clinux_is_locked(int descriptor) {
    struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
    if (fcntl(descriptor, F_OFD_GETLK, &lock)) return -1;
    return lock.l_type != F_UNLCK;
}

int clinux_fcntl(int descriptor, int command, int argument) {
    return fcntl(descriptor, command, argument);
}

int clinux_limit(pid_t process, int resource, uint64_t most) {
    struct rlimit limit = {.rlim_cur = most, .rlim_max = most};
    return prlimit(process, resource, &limit, NULL);
}

int clinux_reset_on_close(int descriptor) {
    struct linger now = {.l_onoff = 1, .l_linger = 0};
    return setsockopt(descriptor, SOL_SOCKET, SO_LINGER, &now, sizeof now);
}

int64_t clinux_file_system(const char *path) {
    struct statfs found;
    if (statfs(path, &found) != 0) {
        return -1;
    }
    return (int64_t)(uint32_t)found.f_type;
}

int clinux_free(const char *path, struct clinux_free *free) {
    struct statvfs found;
    if (statvfs(path, &found) != 0) {
        return -1;
    }
    free->bytes = (int64_t)found.f_bavail * (int64_t)found.f_frsize;
    // Without a limit, some file systems report no files at all, others the largest number.
    free->files = found.f_files == 0 || found.f_favail > INT64_MAX ? -1 : (int64_t)found.f_favail;
    return 0;
}

int clinux_list_folder(const char *path, void *context,
                       void (*visit)(void *context, const char *name, bool is_folder)) {
    DIR *folder = opendir(path);
    if (folder == NULL) {
        return -1;
    }
    struct dirent *entry;
    errno = 0;
    while ((entry = readdir(folder)) != NULL) {
        if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0) {
            continue;
        }
        bool is_folder = entry->d_type == DT_DIR;
        if (entry->d_type == DT_UNKNOWN) {
            struct stat found;
            is_folder = fstatat(dirfd(folder), entry->d_name, &found, AT_SYMLINK_NOFOLLOW) == 0
                && S_ISDIR(found.st_mode);
        }
        visit(context, entry->d_name, is_folder);
        errno = 0;
    }
    int failure = errno;
    closedir(folder);
    errno = failure;
    return failure == 0 ? 0 : -1;
}

int clinux_list_addresses(void *context, void (*visit)(void *, const struct sockaddr *)) {
    struct ifaddrs *first;
    if (getifaddrs(&first) != 0) {
        return -1;
    }
    for (struct ifaddrs *entry = first; entry != NULL; entry = entry->ifa_next) {
        if ((entry->ifa_flags & IFF_UP) != 0 && entry->ifa_addr != NULL) {
            visit(context, entry->ifa_addr);
        }
    }
    freeifaddrs(first);
    return 0;
}

int clinux_finish_output(void) {
    if (fflush(stdout) != 0) {
        return errno;
    }
    return ferror(stdout) ? -1 : 0;
}
