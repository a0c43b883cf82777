// What a disk holds after a power cut: the order of names is kept, as a journal keeps it, and of bytes
// that were not synced each page has any of the contents that it had since the last sync.
#include "internal.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#define PAGE 4096

/// What a stretch of a file held before a write that is not synced.
struct former {
    dev_t device;
    ino_t file;
    int64_t offset, size;
    int64_t count;
    unsigned char *bytes;
    struct former *next;
};

enum name_change { MADE, RENAMED, EXCHANGED, REMOVED };

struct name {
    enum name_change kind;
    char *path, *other;
    /// Where a file is kept that this took the name of.
    char *aside;
    struct name *earlier;
};

static char *followed;
/// The latest first.
static struct former *formers;
static struct name *names;
static unsigned aside_count;
static int64_t free_bytes = -1;

void csim_disk_follow(const char *folder) { followed = strdup(folder); }
void csim_disk_set_free(int64_t bytes) { free_bytes = bytes; }
int64_t csim_disk_free(void) { return free_bytes; }

static bool is_followed(const char *path) {
    return followed && !strncmp(path, followed, strlen(followed));
}

bool csim_disk_takes(int descriptor, int64_t offset, int64_t count) {
    if (free_bytes < 0) return true;
    struct stat known;
    if (fstat(descriptor, &known)) return true;
    int64_t growth = offset + count - known.st_size;
    if (growth <= 0) return true;
    if (growth > free_bytes) return false;
    free_bytes -= growth;
    return true;
}

static void remember(int descriptor, int64_t offset, int64_t count) {
    struct stat known;
    if (!followed || fstat(descriptor, &known) || !S_ISREG(known.st_mode)) return;
    int64_t held = known.st_size - offset;
    if (held < 0) held = 0;
    if (held > count) held = count;
    struct former *made = calloc(1, sizeof *made);
    *made = (struct former){.device = known.st_dev, .file = known.st_ino, .offset = offset,
                            .size = known.st_size, .count = held, .next = formers};
    made->bytes = malloc((size_t)held + 1);
    // The descriptor may be for writing only.
    char path[64];
    snprintf(path, sizeof path, "/proc/self/fd/%d", descriptor);
    int reader = (int)csim_syscall(SYS_openat, AT_FDCWD, path, O_RDONLY | O_CLOEXEC, 0);
    if (reader < 0 || csim_syscall(SYS_pread64, reader, made->bytes, held, offset) != held) made->count = 0;
    if (reader >= 0) csim_syscall(SYS_close, reader);
    formers = made;
}

void csim_disk_writes(int descriptor, int64_t offset, int64_t count) {
    remember(descriptor, offset, count);
}

void csim_disk_resizes(int descriptor, int64_t size) {
    struct stat known;
    if (fstat(descriptor, &known)) return;
    int64_t cut = known.st_size > size ? known.st_size - size : 0;
    remember(descriptor, known.st_size - cut, cut);
}

static void release(struct former *former) {
    free(former->bytes);
    free(former);
}

static void free_name(struct name *name) {
    if (name->aside) csim_syscall(SYS_unlinkat, AT_FDCWD, name->aside, 0);
    free(name->path);
    free(name->other);
    free(name->aside);
    free(name);
}

static bool is_in(const char *path, const char *folder) {
    size_t count = strlen(folder);
    return path && !strncmp(path, folder, count) && path[count] == '/' && !strchr(path + count + 1, '/');
}

void csim_disk_synced(int descriptor, bool whole_system) {
    struct stat known;
    if (!followed || fstat(descriptor, &known)) return;
    if (!S_ISDIR(known.st_mode) || whole_system) {
        for (struct former **place = &formers; *place;) {
            struct former *former = *place;
            if (whole_system || (former->file == known.st_ino && former->device == known.st_dev)) {
                *place = former->next;
                release(former);
            } else {
                place = &former->next;
            }
        }
    }
    if (!S_ISDIR(known.st_mode) && !whole_system) return;
    char link[64], folder[4096];
    snprintf(link, sizeof link, "/proc/self/fd/%d", descriptor);
    ssize_t count = readlink(link, folder, sizeof folder - 1);
    folder[count > 0 ? count : 0] = 0;
    // A journal commits what came before, too: from the latest change in the folder on, all is certain.
    struct name **place = &names;
    while (*place && !whole_system && !is_in((*place)->path, folder) && !is_in((*place)->other, folder))
        place = &(*place)->earlier;
    struct name *certain = *place;
    *place = NULL;
    while (certain) {
        struct name *earlier = certain->earlier;
        free_name(certain);
        certain = earlier;
    }
}

static struct name *note(enum name_change kind, const char *path, const char *other) {
    struct name *made = calloc(1, sizeof *made);
    *made = (struct name){.kind = kind, .path = strdup(path), .other = other ? strdup(other) : NULL,
                          .earlier = names};
    names = made;
    return made;
}

/// Keeps the file of a name that is about to lose it.
static char *put_aside(const char *path) {
    struct stat known;
    if (lstat(path, &known) || !S_ISREG(known.st_mode)) return NULL;
    char aside[4200];
    snprintf(aside, sizeof aside, "%s.aside-%u", followed, aside_count++);
    if (csim_syscall(SYS_linkat, AT_FDCWD, path, AT_FDCWD, aside, 0)) return NULL;
    return strdup(aside);
}

void csim_disk_made(const char *path) {
    if (is_followed(path)) note(MADE, path, NULL);
}

void csim_disk_renames(const char *from, const char *to, bool exchange) {
    struct stat known;
    if (!is_followed(to) || lstat(from, &known)) return;
    char *aside = exchange ? NULL : put_aside(to);
    note(exchange ? EXCHANGED : RENAMED, from, to)->aside = aside;
}

void csim_disk_removes(const char *path) {
    if (!is_followed(path)) return;
    char *aside = put_aside(path);
    if (aside) note(REMOVED, path, NULL)->aside = aside;
}

static uint64_t mixed(uint64_t seed, uint64_t a, uint64_t b) {
    uint64_t value = seed ^ (a * 0x9E3779B97F4A7C15ull) ^ (b * 0xC2B2AE3D27D4EB4Full);
    value ^= value >> 29;
    value *= 0xBF58476D1CE4E5B9ull;
    return value ^ (value >> 32);
}

static void undo_name(struct name *name) {
    switch (name->kind) {
    case MADE:
        if (csim_syscall(SYS_unlinkat, AT_FDCWD, name->path, 0)) csim_syscall(SYS_unlinkat, AT_FDCWD, name->path, AT_REMOVEDIR);
        break;
    case RENAMED:
        csim_syscall(SYS_renameat2, AT_FDCWD, name->other, AT_FDCWD, name->path, 0);
        if (name->aside) csim_syscall(SYS_renameat2, AT_FDCWD, name->aside, AT_FDCWD, name->other, 0);
        break;
    case EXCHANGED:
        csim_syscall(SYS_renameat2, AT_FDCWD, name->path, AT_FDCWD, name->other, 2);
        break;
    case REMOVED:
        csim_syscall(SYS_renameat2, AT_FDCWD, name->aside, AT_FDCWD, name->path, 0);
        break;
    }
}

/// The changes of one file since its last sync.
static int64_t changes_of(ino_t file) {
    int64_t count = 0;
    for (struct former *former = formers; former; former = former->next) count += former->file == file;
    return count;
}

/// The same for a path in each run, which numbers of inodes are not.
static uint64_t hash_of(const char *path) {
    uint64_t hash = 1469598103934665603ull;
    for (; *path; path++) hash = (hash ^ (unsigned char)*path) * 1099511628211ull;
    return hash;
}

static void cut_file(const char *path, ino_t file, uint64_t seed) {
    int64_t count = changes_of(file);
    if (!count) return;
    uint64_t name = hash_of(path);
    int number = (int)csim_syscall(SYS_openat, AT_FDCWD, path, O_RDWR | O_CLOEXEC, 0);
    if (number < 0) return;
    bool keeps_size = mixed(seed, name, 1) & 1;
    int64_t index = count, first_size = -1;
    for (struct former *former = formers; former; former = former->next) {
        if (former->file != file) continue;
        index--;
        first_size = former->size;
        for (int64_t at = 0; at < former->count;) {
            int64_t page = (former->offset + at) / PAGE;
            int64_t end = (page + 1) * PAGE - former->offset;
            if (end > former->count) end = former->count;
            // A page goes back to what it held before its change of this number.
            int64_t from = (int64_t)(mixed(seed, name, 2 + (uint64_t)page) % (uint64_t)(count + 1));
            if (index >= from)
                csim_syscall(SYS_pwrite64, number, former->bytes + at, end - at, former->offset + at);
            at = end;
        }
    }
    struct stat known;
    if (!keeps_size && first_size >= 0) {
        csim_syscall(SYS_ftruncate, number, first_size);
    } else if (!fstat(number, &known)) {
        // What was written beyond the former end and did not arrive is a hole.
        for (int64_t page = (first_size + PAGE - 1) / PAGE; page * PAGE < known.st_size; page++)
            if (mixed(seed, name, 2 + (uint64_t)page) & 1)
                csim_syscall(SYS_fallocate, number, 3, page * PAGE, PAGE);
    }
    csim_syscall(SYS_close, number);
}

static void cut_folder(const char *folder, uint64_t seed) {
    DIR *open_folder = opendir(folder);
    if (!open_folder) return;
    struct dirent *entry;
    while ((entry = readdir(open_folder))) {
        if (!strcmp(entry->d_name, ".") || !strcmp(entry->d_name, "..")) continue;
        char path[4400];
        snprintf(path, sizeof path, "%s/%s", folder, entry->d_name);
        struct stat known;
        if (lstat(path, &known)) continue;
        if (S_ISDIR(known.st_mode)) cut_folder(path, seed);
        if (S_ISREG(known.st_mode)) cut_file(path, known.st_ino, seed);
    }
    closedir(open_folder);
}

void csim_power_cut(const char *folder, uint64_t seed) {
    size_t pending = 0;
    for (struct name *name = names; name; name = name->earlier) pending++;
    size_t lost = pending ? (size_t)(mixed(seed, pending, 0) % (pending + 1)) : 0;
    while (names) {
        struct name *latest = names;
        names = latest->earlier;
        if (lost) {
            lost--;
            undo_name(latest);
        }
        free_name(latest);
    }
    cut_folder(folder, seed);
    csim_disk_settle();
}

void csim_disk_settle(void) {
    while (names) {
        struct name *latest = names;
        names = latest->earlier;
        free_name(latest);
    }
    while (formers) {
        struct former *former = formers;
        formers = former->next;
        release(former);
    }
}
