#define _GNU_SOURCE
#include "commit-prepare.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#include "file-stat.h"
#include "file-protocol.h"

uint32_t commit_prepare_file(int fd, const struct commit_record *record, struct stat *st) {
    if (fstat(fd, st) != 0) return (uint32_t)errno;
    if (!S_ISREG(st->st_mode) || st->st_nlink != 1) return EBADF;
    /* The call is left out if nothing has to change, because it would still cost an entry in the file system's journal. */
    bool has_owner = (record->uid == UINT32_MAX || record->uid == st->st_uid) && (record->gid == UINT32_MAX || record->gid == st->st_gid);
    if (!has_owner && fchown(fd, record->uid, record->gid) != 0) return (uint32_t)errno;
    /* A new owner makes the kernel remove the file's setuid bit. */
    if ((!has_owner || (st->st_mode & 07777) != record->mode) && fchmod(fd, record->mode) != 0) return (uint32_t)errno;
    struct timespec times[2] = {{.tv_nsec = UTIME_OMIT}, file_timespec(record->mtime)};
    return futimens(fd, times) == 0 ? 0 : (uint32_t)errno;
}

static uint32_t prepare_put(int stage, const char *name, const struct commit_record *record, struct stat *st) {
    int fd = openat(stage, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
    if (fd < 0) return errno == ENOENT || errno == ELOOP || errno == ENXIO ? EBADF : (uint32_t)errno;
    uint32_t error = commit_prepare_file(fd, record, st);
    close(fd);
    return error;
}

uint32_t commit_make(int stage, const char *name, const struct commit_record *record, struct stat *st) {
    bool is_link = record->action == COMMIT_SYMLINK, has_owner = record->uid != UINT32_MAX || record->gid != UINT32_MAX;
    if ((is_link ? symlinkat(record->target, stage, name) : mkdirat(stage, name, 0700)) != 0) return (uint32_t)errno;
    if (has_owner && fchownat(stage, name, record->uid, record->gid, AT_SYMLINK_NOFOLLOW) != 0) return (uint32_t)errno;
    struct timespec times[2] = {{.tv_nsec = UTIME_OMIT}, file_timespec(record->mtime)};
    if (is_link && utimensat(stage, name, times, AT_SYMLINK_NOFOLLOW) != 0) return (uint32_t)errno;
    return fstatat(stage, name, st, AT_SYMLINK_NOFOLLOW) == 0 ? 0 : (uint32_t)errno;
}

uint32_t commit_prepare(const struct commit_target *target, const struct commit_record *record, const struct stat *now, struct step *step) {
    bool is_there = now->st_mode != 0, is_directory = S_ISDIR(now->st_mode);
    if (record->action == COMMIT_CHECK || (record->action == COMMIT_REMOVE && !is_there)) return 0;
    step->path = record->path;
    step->old_ino = (uint64_t)now->st_ino;
    step->old_mode = is_directory ? now->st_mode & 07777 : NO_MODE;
    step->makes_directory = record->action == COMMIT_MKDIR;
    bool is_put = record->action == COMMIT_PUT;
    snprintf(step->staged, sizeof step->staged, is_put ? "%u" : "r%u", is_put ? record->content : step->index);
    uint8_t kind = is_there ? STEP_EXCHANGE : STEP_INSTALL;
    if (record->action == COMMIT_REMOVE) kind = STEP_TAKE;
    if (step->makes_directory && is_directory) kind = STEP_MODE;
    struct stat new = {0};
    uint32_t error = 0;
    if (is_put) error = prepare_put(target->stage, step->staged, record, &new);
    else if (kind == STEP_INSTALL || kind == STEP_EXCHANGE) error = commit_make(target->stage, step->staged, record, &new);
    step->new_ino = (uint64_t)new.st_ino;
    step->kind = kind;
    return error;
}
