// Records what a program does to the files below one folder, for simulated power cuts, and makes
// calls fail on demand, for simulated bad disks. Preloaded (ld.so(8)) by the scenario tests.
//
//   SLUICE_CRASH_FOLDER   the folder, absolute and without symbolic links
//   SLUICE_CRASH_LOG      the log, appended to by every process that is started with it
//   SLUICE_CRASH_FAULTS   a file of 32-bit error numbers, one for each kind of call (enum fault);
//                         0 lets the call through; it may change at any time
//
// The log is a row of records: the struct below and behind it `size - sizeof(struct record)` bytes
// of payload. A change is logged under the same lock under which it is made, so that the log's
// order is that of the changes. A sync is logged twice, before and after the call: what stood in
// the log before its beginning is on the disk once its end is in the log.
//
// Not seen: what is written through mmap (SQLite maps only its -shm file, which it makes anew after
// a crash), files without a name (O_TMPFILE; a power cut takes them all), and descriptors that were
// duplicated. sync_file_range(2) promises nothing and is let through unseen.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

enum kind {
    CREATE = 1,    // file, payload: path
    WRITE,         // file, offset, payload: bytes
    TRUNCATE,      // file, length
    PUNCH,         // file, offset, length
    SYNC_BEGIN,    // file, offset: number of the sync
    SYNC_END,      // the same
    RENAME,        // payload: old path, zero byte, new path
    UNLINK,        // payload: path
    MAKE_FOLDER,   // payload: path
    FOLDER_BEGIN,  // offset: number, payload: path
    FOLDER_END,    // the same
    ALL_BEGIN,     // offset: number; sync(2), syncfs(2)
    ALL_END,       // the same
    LINK,          // as RENAME
    UNKNOWN,       // payload: name of a call that this library cannot record
};

enum fault {
    FAIL_OPEN,      // open of an existing name
    FAIL_CREATE,    // open with O_CREAT or O_TMPFILE, mkdir
    FAIL_WRITE,     // write, pwrite, pwritev
    FAIL_SYNC,      // fsync, fdatasync
    FAIL_RENAME,    // rename, link
    FAIL_UNLINK,    // unlink
    FAIL_RESERVE,   // fallocate, ftruncate
    FAIL_READ,      // pread
    FAIL_SEND,      // sendfile of a file with a name
    FAIL_READ_ONE,  // pread of one stored object: the first that is read from then on
    FAULTS
};

struct record {
    uint32_t size;
    uint32_t kind;
    uint64_t file;
    int64_t offset;
    int64_t length;
};

#define DESCRIPTORS 65536

// The inode behind a descriptor of ours; 0 for others.
static uint64_t files[DESCRIPTORS];
// True for a descriptor of a file of ours without a name: it can fail, but leaves nothing to log.
static char unnamed[DESCRIPTORS];
// True for a descriptor of a stored object.
static char objects[DESCRIPTORS];
// The inode that FAIL_READ_ONE concerns; 0 until an object is read.
static uint64_t unreadable;
// The path of a descriptor of a folder of ours.
static char *folders[DESCRIPTORS];
static const char *root;
static size_t root_length;
static int log_descriptor = -1;
static volatile int32_t *faults;
static int64_t last_sync;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

#define REAL(name) __typeof__(&name) real_##name = (__typeof__(&name))dlsym(RTLD_NEXT, #name)

__attribute__((constructor)) static void begin(void) {
    root = getenv("SLUICE_CRASH_FOLDER");
    root_length = root ? strlen(root) : 0;
    REAL(open);
    const char *log_path = getenv("SLUICE_CRASH_LOG");
    if (log_path) log_descriptor = real_open(log_path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0600);
    const char *fault_path = getenv("SLUICE_CRASH_FAULTS");
    int control = fault_path ? real_open(fault_path, O_RDONLY | O_CLOEXEC) : -1;
    if (control >= 0) {
        void *mapped = mmap(NULL, 4096, PROT_READ, MAP_SHARED, control, 0);
        if (mapped != MAP_FAILED) faults = mapped;
        close(control);
    }
}

static int is_ours(const char *path) {
    return root && path && strncmp(path, root, root_length) == 0
        && (path[root_length] == '/' || path[root_length] == 0);
}

static uint64_t file_of(int descriptor) {
    return descriptor >= 0 && descriptor < DESCRIPTORS ? files[descriptor] : 0;
}

static const char *folder_of(int descriptor) {
    return descriptor >= 0 && descriptor < DESCRIPTORS ? folders[descriptor] : NULL;
}

// True when the call is to fail; errno is set then.
static int fails(enum fault kind) {
    int error = faults ? faults[kind] : 0;
    if (error) errno = error;
    return error != 0;
}

// As `fails`, for calls that need a descriptor.
static int fails_on(int descriptor, enum fault kind) {
    int is_unnamed = descriptor >= 0 && descriptor < DESCRIPTORS && unnamed[descriptor];
    return (is_unnamed || file_of(descriptor)) && fails(kind);
}

// Appends a record; O_APPEND makes one write one piece, also beside other processes.
static void note(struct record record, const struct iovec *payload, int pieces) {
    if (log_descriptor < 0) return;
    int saved = errno;
    struct iovec all[1 + 64] = {{&record, sizeof record}};
    record.size = sizeof record;
    for (int i = 0; i < pieces && i < 64; i++) {
        all[1 + i] = payload[i];
        record.size += (uint32_t)payload[i].iov_len;
    }
    REAL(writev);
    if (real_writev(log_descriptor, all, 1 + pieces) != (ssize_t)record.size) abort();
    errno = saved;
}

static void note_path(enum kind kind, uint64_t file, int64_t offset, const char *path) {
    struct iovec text = {(void *)path, strlen(path)};
    note((struct record){.kind = kind, .file = file, .offset = offset}, &text, 1);
}

static void note_paths(enum kind kind, const char *from, const char *to) {
    struct iovec texts[2] = {{(void *)from, strlen(from) + 1}, {(void *)to, strlen(to)}};
    note((struct record){.kind = kind}, texts, 2);
}

// MARK: Opening and closing

static int opened(int descriptor, const char *path, int flags, int existed) {
    if (descriptor < 0 || descriptor >= DESCRIPTORS) return descriptor;
    struct stat found;
    if (fstat(descriptor, &found) != 0) return descriptor;
    if (S_ISDIR(found.st_mode)) {
        folders[descriptor] = strdup(path);
        return descriptor;
    }
    files[descriptor] = found.st_ino;
    objects[descriptor] = strstr(path + root_length, "/new/") || strstr(path + root_length, "/objects/");
    if ((flags & O_CREAT) && !existed) note_path(CREATE, found.st_ino, 0, path);
    if ((flags & O_TRUNC) && existed) note((struct record){.kind = TRUNCATE, .file = found.st_ino}, NULL, 0);
    return descriptor;
}

static int watched_open(int (*call)(const char *, int, ...), const char *path, int flags, mode_t mode) {
    if (!is_ours(path)) return call(path, flags, mode);
    int is_unnamed = (flags & O_TMPFILE) == O_TMPFILE;
    if (fails(flags & O_CREAT || is_unnamed ? FAIL_CREATE : FAIL_OPEN)) return -1;
    if (is_unnamed) {
        int descriptor = call(path, flags, mode);
        if (descriptor >= 0 && descriptor < DESCRIPTORS) unnamed[descriptor] = 1;
        return descriptor;
    }
    pthread_mutex_lock(&lock);
    int existed = access(path, F_OK) == 0;
    int descriptor = opened(call(path, flags, mode), path, flags, existed);
    pthread_mutex_unlock(&lock);
    return descriptor;
}

static mode_t mode_of(int flags, va_list arguments) {
    return flags & O_CREAT || (flags & O_TMPFILE) == O_TMPFILE ? va_arg(arguments, mode_t) : 0;
}

int open(const char *path, int flags, ...) {
    REAL(open);
    va_list arguments;
    va_start(arguments, flags);
    mode_t mode = mode_of(flags, arguments);
    va_end(arguments);
    return watched_open(real_open, path, flags, mode);
}

int open64(const char *path, int flags, ...) {
    REAL(open64);
    va_list arguments;
    va_start(arguments, flags);
    mode_t mode = mode_of(flags, arguments);
    va_end(arguments);
    return watched_open(real_open64, path, flags, mode);
}

int close(int descriptor) {
    REAL(close);
    if (file_of(descriptor)) files[descriptor] = 0;
    if (descriptor >= 0 && descriptor < DESCRIPTORS) unnamed[descriptor] = 0;
    if (folder_of(descriptor)) {
        free(folders[descriptor]);
        folders[descriptor] = NULL;
    }
    return real_close(descriptor);
}

// MARK: Content

static ssize_t written(int descriptor, ssize_t count, int64_t offset, const struct iovec *pieces, int n) {
    struct iovec kept[64];
    size_t left = count > 0 ? (size_t)count : 0;
    int used = 0;
    for (; used < n && used < 64 && left > 0; used++) {
        size_t length = pieces[used].iov_len < left ? pieces[used].iov_len : left;
        kept[used] = (struct iovec){pieces[used].iov_base, length};
        left -= length;
    }
    if (count > 0) note((struct record){.kind = WRITE, .file = files[descriptor], .offset = offset}, kept, used);
    return count;
}

static ssize_t watched_pwrite(
    ssize_t (*call)(int, const void *, size_t, off_t), int descriptor, const void *bytes, size_t count,
    off_t offset) {
    if (fails_on(descriptor, FAIL_WRITE)) return -1;
    if (!file_of(descriptor)) return call(descriptor, bytes, count, offset);
    struct iovec piece = {(void *)bytes, count};
    pthread_mutex_lock(&lock);
    ssize_t done = written(descriptor, call(descriptor, bytes, count, offset), offset, &piece, 1);
    pthread_mutex_unlock(&lock);
    return done;
}

ssize_t pwrite(int descriptor, const void *bytes, size_t count, off_t offset) {
    REAL(pwrite);
    return watched_pwrite(real_pwrite, descriptor, bytes, count, offset);
}

ssize_t pwrite64(int descriptor, const void *bytes, size_t count, off_t offset) {
    REAL(pwrite64);
    return watched_pwrite(real_pwrite64, descriptor, bytes, count, offset);
}

ssize_t pwritev(int descriptor, const struct iovec *pieces, int n, off_t offset) {
    REAL(pwritev);
    if (fails_on(descriptor, FAIL_WRITE)) return -1;
    if (!file_of(descriptor)) return real_pwritev(descriptor, pieces, n, offset);
    // Short rather than unrecorded: the caller comes again with the rest.
    int taken = n < 64 ? n : 64;
    pthread_mutex_lock(&lock);
    ssize_t done = written(descriptor, real_pwritev(descriptor, pieces, taken, offset), offset, pieces, taken);
    pthread_mutex_unlock(&lock);
    return done;
}

ssize_t pwritev64(int descriptor, const struct iovec *pieces, int n, off_t offset) {
    return pwritev(descriptor, pieces, n, offset);
}

ssize_t write(int descriptor, const void *bytes, size_t count) {
    REAL(write);
    if (fails_on(descriptor, FAIL_WRITE)) return -1;
    if (!file_of(descriptor)) return real_write(descriptor, bytes, count);
    struct iovec piece = {(void *)bytes, count};
    pthread_mutex_lock(&lock);
    ssize_t done = real_write(descriptor, bytes, count);
    // Behind the write, because with O_APPEND the place is known only now.
    off_t end = lseek(descriptor, 0, SEEK_CUR);
    done = written(descriptor, done, end - (done > 0 ? done : 0), &piece, 1);
    pthread_mutex_unlock(&lock);
    return done;
}

static int watched_truncate(int (*call)(int, off_t), int descriptor, off_t length) {
    if (fails_on(descriptor, FAIL_RESERVE)) return -1;
    if (!file_of(descriptor)) return call(descriptor, length);
    pthread_mutex_lock(&lock);
    int status = call(descriptor, length);
    if (status == 0)
        note((struct record){.kind = TRUNCATE, .file = files[descriptor], .length = length}, NULL, 0);
    pthread_mutex_unlock(&lock);
    return status;
}

int ftruncate(int descriptor, off_t length) {
    REAL(ftruncate);
    return watched_truncate(real_ftruncate, descriptor, length);
}

int ftruncate64(int descriptor, off_t length) {
    REAL(ftruncate64);
    return watched_truncate(real_ftruncate64, descriptor, length);
}

int fallocate(int descriptor, int mode, off_t offset, off_t length) {
    REAL(fallocate);
    if (!(mode & FALLOC_FL_PUNCH_HOLE) && fails_on(descriptor, FAIL_RESERVE)) return -1;
    if (!file_of(descriptor)) return real_fallocate(descriptor, mode, offset, length);
    pthread_mutex_lock(&lock);
    struct stat before;
    fstat(descriptor, &before);
    int status = real_fallocate(descriptor, mode, offset, length);
    struct record record = {.file = files[descriptor], .offset = offset, .length = length};
    if (status == 0 && mode & FALLOC_FL_PUNCH_HOLE) {
        record.kind = PUNCH;
        note(record, NULL, 0);
    } else if (status == 0 && !(mode & FALLOC_FL_KEEP_SIZE) && offset + length > before.st_size) {
        record.kind = TRUNCATE;
        record.length = offset + length;
        note(record, NULL, 0);
    }
    pthread_mutex_unlock(&lock);
    return status;
}

int fallocate64(int descriptor, int mode, off_t offset, off_t length) {
    return fallocate(descriptor, mode, offset, length);
}

static int fails_to_read(int descriptor) {
    if (fails_on(descriptor, FAIL_READ)) return 1;
    if (!faults || !faults[FAIL_READ_ONE]) return unreadable = 0;
    if (!file_of(descriptor) || !objects[descriptor]) return 0;
    pthread_mutex_lock(&lock);
    if (!unreadable) unreadable = files[descriptor];
    int is_this = unreadable == files[descriptor];
    pthread_mutex_unlock(&lock);
    return is_this && fails(FAIL_READ_ONE);
}

ssize_t pread(int descriptor, void *bytes, size_t count, off_t offset) {
    REAL(pread);
    if (fails_to_read(descriptor)) return -1;
    return real_pread(descriptor, bytes, count, offset);
}

ssize_t pread64(int descriptor, void *bytes, size_t count, off_t offset) {
    REAL(pread64);
    if (fails_to_read(descriptor)) return -1;
    return real_pread64(descriptor, bytes, count, offset);
}

ssize_t sendfile(int target, int descriptor, off_t *offset, size_t count) {
    REAL(sendfile);
    if (descriptor < DESCRIPTORS && !unnamed[descriptor] && fails_on(descriptor, FAIL_SEND)) return -1;
    return real_sendfile(target, descriptor, offset, count);
}

ssize_t sendfile64(int target, int descriptor, off_t *offset, size_t count) {
    return sendfile(target, descriptor, offset, count);
}

// MARK: Syncs

static int watched_sync(int (*call)(int), int descriptor) {
    const char *folder = folder_of(descriptor);
    if (!folder && !file_of(descriptor)) return call(descriptor);
    if (fails(FAIL_SYNC)) return -1;
    pthread_mutex_lock(&lock);
    int64_t number = (int64_t)getpid() << 32 | ++last_sync;
    uint64_t file = files[descriptor];
    char *path = folder ? strdup(folder) : NULL;
    if (path) note_path(FOLDER_BEGIN, 0, number, path);
    else note((struct record){.kind = SYNC_BEGIN, .file = file, .offset = number}, NULL, 0);
    pthread_mutex_unlock(&lock);
    int status = call(descriptor);
    if (status == 0 && path) note_path(FOLDER_END, 0, number, path);
    else if (status == 0) note((struct record){.kind = SYNC_END, .file = file, .offset = number}, NULL, 0);
    free(path);
    return status;
}

int fsync(int descriptor) {
    REAL(fsync);
    return watched_sync(real_fsync, descriptor);
}

int fdatasync(int descriptor) {
    REAL(fdatasync);
    return watched_sync(real_fdatasync, descriptor);
}

int syncfs(int descriptor) {
    REAL(syncfs);
    if (!folder_of(descriptor) && !file_of(descriptor)) return real_syncfs(descriptor);
    if (fails(FAIL_SYNC)) return -1;
    pthread_mutex_lock(&lock);
    int64_t number = (int64_t)getpid() << 32 | ++last_sync;
    note((struct record){.kind = ALL_BEGIN, .offset = number}, NULL, 0);
    pthread_mutex_unlock(&lock);
    int status = real_syncfs(descriptor);
    if (status == 0) note((struct record){.kind = ALL_END, .offset = number}, NULL, 0);
    return status;
}

// MARK: Names

int rename(const char *from, const char *to) {
    REAL(rename);
    if (!is_ours(from) && !is_ours(to)) return real_rename(from, to);
    if (fails(FAIL_RENAME)) return -1;
    pthread_mutex_lock(&lock);
    int status = real_rename(from, to);
    if (status == 0) note_paths(RENAME, from, to);
    pthread_mutex_unlock(&lock);
    return status;
}

int link(const char *from, const char *to) {
    REAL(link);
    if (!is_ours(from) && !is_ours(to)) return real_link(from, to);
    if (fails(FAIL_RENAME)) return -1;
    pthread_mutex_lock(&lock);
    int status = real_link(from, to);
    if (status == 0) note_paths(LINK, from, to);
    pthread_mutex_unlock(&lock);
    return status;
}

int unlink(const char *path) {
    REAL(unlink);
    if (!is_ours(path)) return real_unlink(path);
    if (fails(FAIL_UNLINK)) return -1;
    pthread_mutex_lock(&lock);
    int status = real_unlink(path);
    if (status == 0) note_path(UNLINK, 0, 0, path);
    pthread_mutex_unlock(&lock);
    return status;
}

int mkdir(const char *path, mode_t mode) {
    REAL(mkdir);
    if (!is_ours(path)) return real_mkdir(path, mode);
    if (fails(FAIL_CREATE)) return -1;
    pthread_mutex_lock(&lock);
    int status = real_mkdir(path, mode);
    if (status == 0) note_path(MAKE_FOLDER, 0, 0, path);
    pthread_mutex_unlock(&lock);
    return status;
}

// MARK: Calls that would go by unrecorded; the tests fail when one of them is made.

static void refuse(const char *name) {
    note_path(UNKNOWN, 0, 0, name);
}

int renameat(int old_folder, const char *from, int new_folder, const char *to) {
    REAL(renameat);
    if (is_ours(from) || is_ours(to)) refuse("renameat");
    return real_renameat(old_folder, from, new_folder, to);
}

int renameat2(int old_folder, const char *from, int new_folder, const char *to, unsigned flags) {
    REAL(renameat2);
    if (is_ours(from) || is_ours(to)) refuse("renameat2");
    return real_renameat2(old_folder, from, new_folder, to, flags);
}

int linkat(int old_folder, const char *from, int new_folder, const char *to, int flags) {
    REAL(linkat);
    if (is_ours(to)) refuse("linkat");
    return real_linkat(old_folder, from, new_folder, to, flags);
}

int unlinkat(int folder, const char *path, int flags) {
    REAL(unlinkat);
    if (is_ours(path) || folder_of(folder)) refuse("unlinkat");
    return real_unlinkat(folder, path, flags);
}

int rmdir(const char *path) {
    REAL(rmdir);
    if (is_ours(path)) refuse("rmdir");
    return real_rmdir(path);
}

int truncate(const char *path, off_t length) {
    REAL(truncate);
    if (is_ours(path)) refuse("truncate");
    return real_truncate(path, length);
}

int openat(int folder, const char *path, int flags, ...) {
    REAL(openat);
    va_list arguments;
    va_start(arguments, flags);
    mode_t mode = mode_of(flags, arguments);
    va_end(arguments);
    if (flags & (O_WRONLY | O_RDWR) && (is_ours(path) || folder_of(folder))) refuse("openat");
    return real_openat(folder, path, flags, mode);
}

ssize_t writev(int descriptor, const struct iovec *pieces, int n) {
    REAL(writev);
    if (file_of(descriptor)) refuse("writev");
    return real_writev(descriptor, pieces, n);
}

ssize_t copy_file_range(int in, off64_t *in_offset, int out, off64_t *out_offset, size_t count, unsigned flags) {
    REAL(copy_file_range);
    if (file_of(out)) refuse("copy_file_range");
    return real_copy_file_range(in, in_offset, out, out_offset, count, flags);
}
