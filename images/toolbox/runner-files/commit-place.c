#define _GNU_SOURCE
#include "commit-place.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "beneath.h"
#include "file-stat.h"
#include "file-protocol.h"

#define SEARCH_DEPTH_MAX 200

void place_forget(struct commit_target *target) {
    if (target->parent >= 0) close(target->parent);
    target->parent = -1;
}

uint32_t place_find(struct commit_target *target, const char *path, struct place *place) {
    const char *slash = strrchr(path, '/');
    size_t length = slash ? (size_t)(slash - path) : 0;
    place->name = slash ? slash + 1 : path;
    bool is_known = target->parent >= 0 && strncmp(target->parent_path, path, length) == 0 && target->parent_path[length] == 0;
    if (!is_known) {
        place_forget(target);
        memcpy(target->parent_path, path, length);
        target->parent_path[length] = 0;
        target->parent = open_beneath(target->root, target->parent_path, O_PATH);
    }
    place->directory = target->parent;
    return target->parent >= 0 ? 0 : (uint32_t)errno;
}

bool place_look(struct place place, struct stat *st) {
    if (fstatat(place.directory, place.name, st, AT_SYMLINK_NOFOLLOW) == 0) return true;
    if (errno == ENOENT) errno = 0;
    return false;
}

/* ---- what a record expects --------------------------------------------------------------------------------------- */

static bool is_as_known(const struct commit_record *record, const struct stat *now) {
    if (record->ino != 0 && record->ino != (uint64_t)now->st_ino) return false;
    /* The times and the size of a directory change with every name in it. */
    if (S_ISDIR(now->st_mode)) return true;
    return record->size == (uint64_t)now->st_size && record->expected_mtime == file_time(now->st_mtim) && record->expected_ctime == file_time(now->st_ctim);
}

static bool is_older_below(int fd, int64_t limit, int depth);

static bool is_older(int directory, const char *name, int64_t limit, int depth) {
    struct stat st;
    if (fstatat(directory, name, &st, AT_SYMLINK_NOFOLLOW) != 0) return errno == ENOENT;
    if (file_time(st.st_ctim) > limit) return false;
    if (!S_ISDIR(st.st_mode)) return true;
    if (depth >= SEARCH_DEPTH_MAX) return false;
    int fd = openat(directory, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    return fd >= 0 && is_older_below(fd, limit, depth + 1);
}

/* Closes the descriptor. */
static bool is_older_below(int fd, int64_t limit, int depth) {
    DIR *directory = fdopendir(fd);
    if (!directory) {
        close(fd);
        return false;
    }
    bool is_old = true;
    struct dirent *entry;
    while (is_old && (errno = 0, entry = readdir(directory)))
        if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0) is_old = is_older(fd, entry->d_name, limit, depth);
    is_old = is_old && errno == 0;
    closedir(directory);
    return is_old;
}

/* A directory that remains keeps its entries, so it does not matter when they last changed. */
static bool stays_directory(const struct commit_record *record, const struct stat *now) {
    return S_ISDIR(now->st_mode) && (record->action == COMMIT_MKDIR || record->action == COMMIT_CHECK);
}

static uint32_t compare(const struct commit_record *record, struct place place, const struct stat *now) {
    bool is_there = now->st_mode != 0;
    switch (record->expects) {
    case EXPECT_ABSENT: return is_there ? CONFLICT_EXISTS : 0;
    case EXPECT_STATE:
    case EXPECT_OLDER:
        if (!is_there) return CONFLICT_MISSING;
        if (record->expected_type != ENTRY_UNKNOWN && record->expected_type != file_type(now->st_mode)) return CONFLICT_TYPE;
        if (record->expects == EXPECT_STATE) return is_as_known(record, now) ? 0 : CONFLICT_CHANGED;
        return stays_directory(record, now) || is_older(place.directory, place.name, record->expected_ctime, 0) ? 0 : CONFLICT_CHANGED;
    default: return 0;
    }
}

static bool needs_parent(const struct commit_record *record) { return record->action <= COMMIT_SYMLINK; }

uint32_t place_check(struct commit_target *target, const struct commit_records *records, const struct commit_record *record, struct stat *now) {
    struct place place;
    memset(now, 0, sizeof *now);
    if (is_stage_name(record->path)) return CONFLICT_RESERVED;
    uint32_t error = place_find(target, record->path, &place);
    if (error == EXDEV) return CONFLICT_MOUNT;
    if (error && error != ENOENT && error != ENOTDIR && error != ELOOP) return CONFLICT_PARENT;
    if (error && needs_parent(record) && !commit_records_make_parent(records, record)) return CONFLICT_PARENT;
    if (!error && !place_look(place, now)) {
        if (errno != 0) return CONFLICT_PARENT;
        memset(now, 0, sizeof *now);
    }
    struct stat root;
    if (now->st_mode != 0 && S_ISDIR(now->st_mode) && (fstat(target->root, &root) != 0 || root.st_dev != now->st_dev)) return CONFLICT_MOUNT;
    return compare(record, place, now);
}
