#define _GNU_SOURCE
#include "file-remove.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "file-protocol.h"

/* The directories on the way down to the current one, to find out on the way up whether one of them was moved meanwhile. */
struct descent {
    struct place {
        dev_t device;
        ino_t inode;
    } *places;
    size_t depth, capacity;
};

static bool remember_here(struct descent *way) {
    struct stat here;
    if (stat(".", &here) != 0) return false;
    if (way->depth == way->capacity) {
        size_t capacity = way->capacity ? way->capacity * 2 : 64;
        struct place *places = realloc(way->places, capacity * sizeof *places);
        if (!places) return false;
        way->places = places;
        way->capacity = capacity;
    }
    way->places[way->depth++] = (struct place){here.st_dev, here.st_ino};
    return true;
}

/* Fails for a directory of somebody else, which is no error yet: its mode may allow enough as it is. */
static void take_rights(const char *name) {
    char self[64];
    int fd = open(name, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0) return;
    snprintf(self, sizeof self, "/proc/self/fd/%d", fd);
    chmod(self, 0700);
    close(fd);
}

static int open_directory(const char *name, uint8_t flags) {
    if (flags & REMOVE_WITHOUT_RIGHTS) take_rights(name);
    return open(name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
}

static uint32_t go_down(struct descent *way, const char *name, uint8_t flags) {
    if (!remember_here(way)) return (uint32_t)errno;
    int fd = open_directory(name, flags);
    uint32_t error = fd >= 0 && fchdir(fd) == 0 ? 0 : (uint32_t)errno;
    if (fd >= 0) close(fd);
    return error;
}

/* If a directory was moved away, its ".." is another place, whose files nobody asked to remove. */
static uint32_t go_up(struct descent *way) {
    struct stat here;
    if (chdir("..") != 0 || stat(".", &here) != 0) return (uint32_t)errno;
    struct place expected = way->places[--way->depth];
    return here.st_dev == expected.device && here.st_ino == expected.inode ? 0 : ESTALE;
}

/* 0 when the entry is gone, ENOTEMPTY when it is a directory that must be emptied first. */
static uint32_t remove_entry(const char *name) {
    if (unlink(name) == 0 || errno == ENOENT) return 0;
    if (errno != EISDIR && errno != EPERM) return (uint32_t)errno;
    int error = errno;
    if (rmdir(name) == 0 || errno == ENOENT) return 0;
    return (uint32_t)(errno == ENOTDIR ? error : errno);
}

/* Removes the entries of the current directory. If one is a directory with entries, this enters it, sets `*below` and stops. */
static uint32_t empty_entries(const struct file_job *job, struct descent *way, uint8_t flags, bool *below) {
    DIR *directory = opendir(".");
    if (!directory) return (uint32_t)errno;
    struct dirent *entry;
    uint32_t error = 0;
    *below = false;
    while (!error && !*below && (errno = 0, entry = readdir(directory))) {
        if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0) continue;
        error = *job->cancelled ? ECANCELED : remove_entry(entry->d_name);
        if (error != ENOTEMPTY) continue;
        error = go_down(way, entry->d_name, flags);
        *below = !error;
    }
    if (!error && !*below) error = (uint32_t)errno;
    closedir(directory);
    return error;
}

/* Empties the current directory. It walks with chdir, so it needs one descriptor only, however deep the tree is. */
static uint32_t empty_here(const struct file_job *job, uint8_t flags) {
    struct descent way = {0};
    uint32_t error;
    bool below = false;
    for (;;) {
        error = empty_entries(job, &way, flags, &below);
        if (error || (!below && way.depth == 0)) break;
        if (!below) error = go_up(&way);
        if (error) break;
    }
    free(way.places);
    return error;
}

uint32_t file_remove(const struct file_job *job, const char *path, uint8_t flags) {
    struct stat st;
    if (lstat(path, &st) != 0) return errno == ENOENT && (flags & REMOVE_MISSING_IS_FINE) ? 0 : (uint32_t)errno;
    if (!S_ISDIR(st.st_mode)) return unlink(path) == 0 ? 0 : (uint32_t)errno;
    if (rmdir(path) == 0) return 0;
    if (errno != ENOTEMPTY || !(flags & REMOVE_RECURSIVE)) return (uint32_t)errno;
    int start = open(".", O_PATH | O_DIRECTORY | O_CLOEXEC), fd = open_directory(path, flags);
    uint32_t error = start >= 0 && fd >= 0 && fchdir(fd) == 0 ? empty_here(job, flags) : (uint32_t)errno;
    if (!error && unlinkat(start, path, AT_REMOVEDIR) != 0) error = (uint32_t)errno;
    if (chdir("/") != 0 && !error) error = (uint32_t)errno;
    if (start >= 0) close(start);
    if (fd >= 0) close(fd);
    return error;
}
