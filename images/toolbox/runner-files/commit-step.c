#define _GNU_SOURCE
#include "commit-step.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "file-remove.h"
#include "file-protocol.h"

#ifndef RENAME_NOREPLACE
#define RENAME_NOREPLACE 1u
#define RENAME_EXCHANGE 2u
#endif

/* The name in the stage for the replaced file, on a file system that cannot exchange two names at once. */
static const char *spare_name(const struct step *step) {
    static char name[STAGED_NAME_MAX];
    snprintf(name, sizeof name, "o%u", step->index);
    return name;
}

static bool rename_with(struct place from, struct place to, unsigned flags) {
    return syscall(SYS_renameat2, from.directory, from.name, to.directory, to.name, flags) == 0;
}

/* Not every file system has RENAME_NOREPLACE. On others, another process can take the name between the check and the rename. */
static bool rename_to_free(struct place from, struct place to) {
    if (rename_with(from, to, RENAME_NOREPLACE)) return true;
    struct stat st;
    if (errno != EINVAL && errno != ENOSYS) return false;
    if (!place_look(to, &st)) return errno == 0 && renameat(from.directory, from.name, to.directory, to.name) == 0;
    errno = EEXIST;
    return false;
}

uint32_t place_set_directory(struct place place, uint32_t mode, const struct timespec *mtime) {
    char self[64];
    int fd = openat(place.directory, place.name, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0) return (uint32_t)errno;
    snprintf(self, sizeof self, "/proc/self/fd/%d", fd);
    struct timespec times[2] = {{.tv_nsec = UTIME_OMIT}, mtime ? *mtime : (struct timespec){.tv_nsec = UTIME_OMIT}};
    uint32_t error = chmod(self, mode) == 0 && (!mtime || utimensat(AT_FDCWD, self, times, 0) == 0) ? 0 : (uint32_t)errno;
    close(fd);
    return error;
}

/* Not every mode can be set again, so a directory that can be written to keeps its mode until the end. */
static uint32_t make_writable(struct place place, const struct step *step) {
    struct stat st;
    if (place_look(place, &st) && (st.st_mode & 0700) == 0700) return 0;
    return place_set_directory(place, step->old_mode | 0700, NULL);
}

/* Moving a directory needs permission to write to it. If that is why a rename failed, its owner gets the permission. */
static bool make_movable(struct place place, const struct step *step) {
    return errno == EACCES && step->old_mode != NO_MODE && place_set_directory(place, step->old_mode | 0700, NULL) == 0;
}

static struct place staged(const struct commit_target *target, const char *name) { return (struct place){target->stage, name}; }

static bool take(const struct commit_target *target, const struct step *step, struct place from, const char *name) {
    struct place to = staged(target, name);
    return rename_to_free(from, to) || (make_movable(from, step) && rename_to_free(from, to));
}

static bool exchange(const struct commit_target *target, const struct step *step, struct place at) {
    struct place new = staged(target, step->staged);
    if (rename_with(new, at, RENAME_EXCHANGE) || (make_movable(at, step) && rename_with(new, at, RENAME_EXCHANGE))) return true;
    if (errno != EINVAL && errno != ENOSYS) return false;
    return take(target, step, at, spare_name(step)) && rename_to_free(new, at);
}

uint32_t step_do(struct commit_target *target, const struct step *step) {
    struct place place;
    uint32_t error = place_find(target, step->path, &place);
    if (error) return error;
    bool is_done = false;
    switch (step->kind) {
    case STEP_INSTALL: is_done = rename_to_free(staged(target, step->staged), place); break;
    case STEP_EXCHANGE: is_done = exchange(target, step, place); break;
    case STEP_TAKE: is_done = take(target, step, place, step->staged); break;
    default: return make_writable(place, step);
    }
    error = is_done ? 0 : (uint32_t)errno;
    /* The directory that was entered last may just have been replaced. */
    place_forget(target);
    return error;
}

static bool is_at(struct place place, uint64_t ino) {
    struct stat st;
    return place_look(place, &st) && (uint64_t)st.st_ino == ino;
}

bool step_look_at_old(const struct commit_target *target, const struct step *step, struct stat *st) {
    if (step->kind == STEP_EXCHANGE && place_look(staged(target, spare_name(step)), st)) return true;
    return place_look(staged(target, step->staged), st);
}

uint32_t step_remove_in_place(struct commit_target *target, const struct step *step) {
    const volatile uint32_t never = 0;
    const struct file_job job = {.cancelled = &never};
    struct place place;
    struct stat st;
    uint32_t error = place_find(target, step->path, &place);
    bool is_found = !error && place_look(place, &st);
    if (!error && !is_found) error = (uint32_t)errno;
    if (is_found && (uint64_t)st.st_ino == step->old_ino) {
        if (fchdir(place.directory) != 0) return (uint32_t)errno;
        error = file_remove(&job, place.name, REMOVE_RECURSIVE | REMOVE_MISSING_IS_FINE | REMOVE_WITHOUT_RIGHTS);
    }
    struct place new = staged(target, step->staged);
    if (!error && step->kind == STEP_EXCHANGE && is_at(new, step->new_ino) && !rename_to_free(new, place)) error = (uint32_t)errno;
    place_forget(target);
    return error;
}

/* ---- undoing ------------------------------------------------------------------------------------------------------ */

static bool is_there(struct place place) {
    struct stat st;
    return place_look(place, &st);
}

/* Puts back whatever the exchange has moved into the stage, even if another process had replaced the old file just before. */
static bool undo_exchange(const struct commit_target *target, const struct step *step, struct place at) {
    struct place new = staged(target, step->staged), spare = staged(target, spare_name(step));
    bool is_new = is_at(at, step->new_ino);
    if (is_there(spare)) return (!is_new || rename_to_free(at, new)) && rename_to_free(spare, at);
    if (is_new) return rename_with(new, at, RENAME_EXCHANGE);
    errno = ESTALE;
    return is_at(new, step->new_ino);
}

static bool undo_install(const struct commit_target *target, const struct step *step, struct place at) {
    struct place new = staged(target, step->staged);
    if (is_at(new, step->new_ino)) return true;
    errno = ESTALE;
    return is_at(at, step->new_ino) && rename_to_free(at, new);
}

static bool undo_take(const struct commit_target *target, const struct step *step, struct place at) {
    struct place old = staged(target, step->staged);
    return !is_there(old) || rename_to_free(old, at);
}

/* Whether the directory of the step is where it was, with another mode. */
static bool has_other_mode(struct place place, const struct step *step) {
    struct stat st;
    if (step->old_mode == NO_MODE || !place_look(place, &st) || (uint64_t)st.st_ino != step->old_ino) return false;
    return (st.st_mode & 07777) != step->old_mode;
}

/* Looks into the stage: the file to install is still there, or nothing was taken. */
static bool was_never_done(const struct commit_target *target, const struct step *step) {
    struct stat st;
    if (step->kind == STEP_MODE) return false;
    if (step->kind == STEP_TAKE) return !place_look(staged(target, step->staged), &st) && errno == 0;
    return is_at(staged(target, step->staged), step->new_ino) && !is_there(staged(target, spare_name(step)));
}

uint32_t step_undo(struct commit_target *target, const struct step *step) {
    struct place place;
    uint32_t error = place_find(target, step->path, &place);
    /* The step was perhaps never done because its directory is not there. */
    if (error) return was_never_done(target, step) ? 0 : error;
    bool is_undone = true;
    if (step->kind == STEP_EXCHANGE) is_undone = undo_exchange(target, step, place);
    if (step->kind == STEP_INSTALL) is_undone = undo_install(target, step, place);
    if (step->kind == STEP_TAKE) is_undone = undo_take(target, step, place);
    error = is_undone ? 0 : (uint32_t)errno;
    if (!error && has_other_mode(place, step)) error = place_set_directory(place, step->old_mode, NULL);
    place_forget(target);
    return error;
}

void step_open_directory(struct commit_target *target, const struct step *step) {
    struct place place;
    bool is_new = step->makes_directory && step->kind != STEP_MODE;
    if (place_find(target, step->path, &place) != 0) return;
    if (is_new && is_at(place, step->new_ino)) place_set_directory(place, 0700, NULL);
    if (step->kind == STEP_MODE && is_at(place, step->old_ino)) make_writable(place, step);
    place_forget(target);
}
