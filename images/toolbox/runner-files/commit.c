/*
 * A commit first checks every path and prepares everything in the stage, a directory that nobody else uses. Then it renames. Until the
 * last rename everything can be put back, by the commit itself or by `recover`, which reads the commit's journal. Once all its records
 * have arrived, a commit is not cancelled any more: even if the process that asked for it dies, the tree ends as it was or as asked for.
 */
#define _GNU_SOURCE
#include "commit.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <time.h>
#include <unistd.h>

#include "commit-journal.h"
#include "commit-prepare.h"
#include "commit-records.h"
#include "file-remove.h"
#include "file-stat.h"

#define RECORDS_MAX_BYTES (128u << 20)
#define LOCK_ATTEMPTS 100
#define LOCK_PAUSE_MS 50
#define NO_RECORD UINT32_MAX

struct commit {
    struct commit_target target;
    char path[PATH_MAX + NAME_MAX + 2], *stage_name; /* the path of the target, a NUL, and the name of the stage */
    const uint8_t *key;
    struct commit_records records;
    struct step *steps;
    size_t count, unmovable;
    uint32_t done, failed, conflicts;
    uint8_t flags;
    struct file_result *result;
};

/* ---- the target and its stage ------------------------------------------------------------------------------------ */

/* The second string of the request: the key, then the name of the stage. */
static uint32_t take_request(struct commit *c, const struct file_request *request) {
    if (request->path_length >= PATH_MAX || request->second_length <= COMMIT_KEY_BYTES) return EINVAL;
    size_t length = request->second_length - COMMIT_KEY_BYTES;
    const char *name = (const char *)request->second + COMMIT_KEY_BYTES;
    if (length > NAME_MAX || memchr(name, '/', length) || memchr(name, 0, length)) return EINVAL;
    c->key = request->second;
    /* There are only NULs behind both. */
    memcpy(c->path, request->path, request->path_length);
    c->stage_name = c->path + request->path_length + 1;
    memcpy(c->stage_name, name, length);
    return is_stage_name(c->stage_name) ? 0 : EINVAL;
}

/* Only one commit at a time may change a directory. Whoever may read the directory can hold its lock, so this gives up after a while. */
static uint32_t lock(int directory) {
    for (int i = 0; i < LOCK_ATTEMPTS; i++) {
        if (flock(directory, LOCK_EX | LOCK_NB) == 0) return 0;
        if (errno != EWOULDBLOCK && errno != EINTR) return 0; /* the file system has no locks */
        nanosleep(&(struct timespec){.tv_nsec = LOCK_PAUSE_MS * 1000000}, NULL);
    }
    return EWOULDBLOCK;
}

static uint32_t open_target(struct commit *c) {
    struct stat st;
    c->target.root = open(c->path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    uint32_t error = c->target.root < 0 ? (uint32_t)errno : lock(c->target.root);
    if (error) return error;
    c->target.stage = openat(c->target.root, c->stage_name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (c->target.stage < 0 || fstat(c->target.stage, &st) != 0) return (uint32_t)errno;
    /* If others could write to the stage, they could replace its files at any moment. */
    return st.st_uid == geteuid() && (st.st_mode & 077) == 0 ? 0 : EPERM;
}

static void remove_stage(struct commit *c) {
    const volatile uint32_t never = 0;
    struct file_job job = {.cancelled = &never};
    c->stage_name[-1] = '/';
    if (file_remove(&job, c->path, REMOVE_RECURSIVE | REMOVE_MISSING_IS_FINE | REMOVE_WITHOUT_RIGHTS) != 0) c->flags |= COMMIT_STAGE_LEFT;
    c->stage_name[-1] = 0;
}

static void close_target(struct commit *c) {
    place_forget(&c->target);
    if (c->target.stage >= 0) close(c->target.stage);
    if (c->target.root >= 0) close(c->target.root);
}

/* ---- checking, and preparing -------------------------------------------------------------------------------------- */

static uint32_t read_records(struct commit *c, const struct file_job *job, uint64_t size) {
    if (size > RECORDS_MAX_BYTES) return EFBIG;
    uint8_t *bytes = malloc((size_t)size + 1);
    size_t used = 0;
    ssize_t n = 1;
    while (bytes && n != 0 && used <= size) {
        n = read(job->stream, bytes + used, (size_t)size + 1 - used);
        if (n < 0 && errno != EINTR) break;
        if (n > 0) used += (size_t)n;
    }
    /* The stream also ends, too early, when the caller gives the commit up. */
    uint32_t error = !bytes ? ENOMEM : n < 0 ? (uint32_t)errno : used != size ? ECANCELED : 0;
    if (!error && !commit_records_parse(bytes, used, &c->records)) error = EINVAL;
    free(bytes);
    return error;
}

static void note_conflict(struct commit *c, size_t index, uint32_t reason) {
    uint8_t *at = c->result->bytes + COMMIT_RESULT_BYTES + c->conflicts * COMMIT_CONFLICT_BYTES;
    if (c->conflicts++ >= COMMIT_CONFLICTS_MAX) return;
    put32(at, (uint32_t)index);
    put32(at + 4, reason);
    c->result->length += COMMIT_CONFLICT_BYTES;
}

static void check_all(struct commit *c, struct stat *states) {
    for (size_t i = 0; i < c->records.count; i++) {
        uint32_t reason = place_check(&c->target, &c->records, &c->records.all[i], &states[i]);
        if (reason) note_conflict(c, i, reason);
    }
    place_forget(&c->target);
}

static uint32_t prepare_all(struct commit *c, const struct stat *states) {
    uint32_t error = 0;
    for (size_t i = 0; !error && i < c->records.count; i++) {
        struct step *step = &c->steps[c->count];
        *step = (struct step){.index = (uint32_t)i};
        error = commit_prepare(&c->target, &c->records.all[i], &states[i], step);
        c->count += step->kind != 0;
        if (error) c->failed = (uint32_t)i;
    }
    return error;
}

/* ---- doing, and undoing ------------------------------------------------------------------------------------------ */

static void undo(struct commit *c, const struct step *steps, size_t count) {
    for (size_t i = 0; i < count; i++) step_open_directory(&c->target, &steps[i]);
    for (size_t i = count; i-- > 0;)
        if (step_undo(&c->target, &steps[i]) != 0) c->flags |= COMMIT_TORN;
}

/* A directory of an overlay's lower layer cannot be moved, but it can be removed, later. */
static bool mark_unmovable(struct commit *c, struct step *step) {
    struct place place;
    struct stat st;
    if (step->old_mode == NO_MODE || (step->kind != STEP_TAKE && step->kind != STEP_EXCHANGE)) return false;
    if (place_find(&c->target, step->path, &place) != 0 || !place_look(place, &st)) return false;
    step->cannot_move = S_ISDIR(st.st_mode) && (uint64_t)st.st_ino == step->old_ino;
    c->unmovable += step->cannot_move;
    return step->cannot_move;
}

/* Another process may have changed or replaced the old file between the check and the rename. */
static bool has_taken_expected(const struct commit *c, const struct step *step, const struct stat *expected) {
    struct stat old;
    if (step->kind != STEP_EXCHANGE && step->kind != STEP_TAKE) return true;
    if (c->records.all[step->index].expects == EXPECT_ANY) return true;
    if (!step_look_at_old(&c->target, step, &old)) return false;
    /* An overlay makes a new file when it renames one that has further names in a lower layer. */
    bool is_renumbered = S_ISREG(old.st_mode) && S_ISREG(expected->st_mode) && expected->st_nlink > 1;
    if ((uint64_t)old.st_ino != step->old_ino && !is_renumbered) return false;
    return S_ISDIR(old.st_mode) || (old.st_size == expected->st_size && file_time(old.st_mtim) == file_time(expected->st_mtim));
}

static uint32_t do_step(struct commit *c, struct step *step, const struct stat *states) {
    uint32_t error = step_do(&c->target, step);
    if (error == EXDEV && mark_unmovable(c, step)) return 0;
    uint32_t conflict = error == EEXIST ? CONFLICT_EXISTS : error == EXDEV || error == EBUSY ? CONFLICT_MOUNT : 0;
    if (!error && !has_taken_expected(c, step, &states[step->index])) conflict = CONFLICT_CHANGED;
    if (conflict) note_conflict(c, step->index, conflict);
    else if (error) c->failed = step->index;
    return conflict ? EEXIST : error;
}

/* The directories get their modes last, because with some modes nothing can be put into them any more. */
static uint32_t finish_directories(struct commit *c) {
    for (size_t i = c->count; i-- > 0;) {
        const struct step *step = &c->steps[i];
        const struct commit_record *record = &c->records.all[step->index];
        if (!step->makes_directory) continue;
        struct place place;
        uint32_t error = place_find(&c->target, step->path, &place);
        struct timespec mtime = file_timespec(record->mtime);
        if (!error) error = place_set_directory(place, record->mode, step->kind == STEP_MODE ? NULL : &mtime);
        if (error) c->failed = step->index;
        if (error) return error;
    }
    return 0;
}

/* Removals cannot be undone, so they come when everything else is done. */
static uint32_t remove_in_place(struct commit *c, const struct step *steps, size_t count) {
    uint32_t error = 0;
    for (size_t i = 0; !error && i < count; i++) {
        if (!steps[i].cannot_move) continue;
        error = step_remove_in_place(&c->target, &steps[i]);
        if (error) c->failed = steps[i].index;
    }
    if (error) c->flags |= COMMIT_TORN;
    return error;
}

static uint32_t perform(struct commit *c, const struct stat *states) {
    uint32_t error = journal_write(c->target.stage, c->key, c->steps, c->count, JOURNAL_OF_STEPS);
    if (error) return error;
    size_t tried = 0;
    while (!error && tried < c->count) error = do_step(c, &c->steps[tried++], states);
    if (!error) error = finish_directories(c);
    if (!error && c->unmovable > 0) error = journal_write(c->target.stage, c->key, c->steps, c->count, JOURNAL_OF_REMOVALS);
    if (!error) error = journal_close(c->target.stage);
    if (error) {
        undo(c, c->steps, tried);
        return error;
    }
    c->done = (uint32_t)c->count;
    return remove_in_place(c, c->steps, c->count);
}

static uint32_t commit_records(struct commit *c) {
    struct stat *states = calloc(c->records.count + 1, sizeof *states);
    c->steps = calloc(c->records.count + 1, sizeof *c->steps);
    uint32_t error = states && c->steps ? 0 : ENOMEM;
    if (!error) check_all(c, states);
    if (!error && c->conflicts == 0) error = prepare_all(c, states);
    if (!error && c->conflicts == 0) error = perform(c, states);
    free(states);
    free(c->steps);
    return c->conflicts > 0 ? 0 : error;
}

/* ---- the operations ---------------------------------------------------------------------------------------------- */

static void begin(struct commit *c, struct file_result *result) {
    *c = (struct commit){.target = {-1, -1, -1, ""}, .failed = NO_RECORD, .result = result};
    result->length = COMMIT_RESULT_BYTES;
}

static uint32_t end(struct commit *c, uint32_t error) {
    close_target(c);
    put32(c->result->bytes, c->flags);
    put32(c->result->bytes + 4, c->done);
    put32(c->result->bytes + 8, c->failed);
    put32(c->result->bytes + 12, c->conflicts);
    return error;
}

uint32_t commit_run(const struct file_job *job, const struct file_request *request, struct file_result *result) {
    static struct commit c;
    begin(&c, result);
    uint32_t error = take_request(&c, request);
    if (!error) error = read_records(&c, job, request->length);
    if (!error) error = open_target(&c);
    if (!error) {
        error = commit_records(&c);
        if (!(c.flags & COMMIT_TORN)) remove_stage(&c);
    }
    commit_records_free(&c.records);
    return end(&c, error);
}

static uint32_t roll_back(struct commit *c) {
    struct journal journal;
    uint32_t error = journal_read(c->target.stage, c->key, &journal, JOURNAL_OF_STEPS);
    if (!error) undo(c, journal.steps, journal.count);
    if (!error) c->done = (uint32_t)journal.count;
    journal_free(&journal);
    return error;
}

/* Finishes a commit that had done all its steps but the removals. */
static uint32_t roll_forward(struct commit *c) {
    struct journal journal;
    uint32_t error = journal_read(c->target.stage, c->key, &journal, JOURNAL_OF_REMOVALS);
    if (!error) error = remove_in_place(c, journal.steps, journal.count);
    journal_free(&journal);
    return error == ENOENT ? 0 : error;
}

uint32_t commit_recover(const struct file_request *request, struct file_result *result) {
    static struct commit c;
    begin(&c, result);
    uint32_t error = take_request(&c, request);
    if (!error) error = open_target(&c);
    if (error == ENOENT && c.target.root >= 0) return end(&c, 0);
    if (error) return end(&c, error);
    error = roll_back(&c);
    if (error == ENOENT) error = roll_forward(&c);
    if (!error && !(c.flags & COMMIT_TORN)) remove_stage(&c);
    return end(&c, error);
}
