/*
 * Copies paths from one tree to another. Other processes may be changing the first tree meanwhile. Nobody uses the second one yet, and the
 * caller discards it if this fails. So unlike a commit, a copy neither checks what it replaces nor keeps it to undo the copy: keeping it
 * would make an overlay copy it first, which would take most of the time.
 */
#define _GNU_SOURCE
#include "copy.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>
#include <unistd.h>

#include "commit-prepare.h"
#include "commit-records.h"
#include "copy-content.h"
#include "file-remove.h"
#include "file-stat.h"
#include "io.h"

#define NO_RECORD UINT32_MAX
#define STATES_AT_ONCE 2048
#define NEW "new"
/* Together 20 ms: a kernel updates the clock that file times are taken from at least every 10 ms. */
#define TICK_ATTEMPTS 40
#define TICK_PAUSE_NS 500000

struct copy {
    const struct file_job *job;
    struct commit_target to, from; /* `from` has no stage */
    char stage_name[64];
    struct commit_records records;
    uint64_t bytes_left;
    int64_t changed_at; /* the ctime of the file that was installed last */
    size_t states;
    uint8_t output[STATES_AT_ONCE * COPY_STATE_BYTES];
};

/* ---- the two trees ----------------------------------------------------------------------------------------------- */

static bool is_sensible(const struct commit_records *records) {
    for (size_t i = 0; i < records->count; i++) {
        const struct commit_record *record = &records->all[i];
        if (record->expects != EXPECT_ANY || record->action == COMMIT_CHECK || is_stage_name(record->path)) return false;
        if (record->size > INT64_MAX) return false;
    }
    return true;
}

static uint32_t open_root(const uint8_t *name, size_t length, int *fd) {
    char path[PATH_MAX];
    if (length >= sizeof path) return ENAMETOOLONG;
    memcpy(path, name, length);
    path[length] = 0;
    *fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    return *fd < 0 ? (uint32_t)errno : 0;
}

/* The second string of the request: the other tree's directory, a NUL, and the records. */
static uint32_t take_request(struct copy *c, const struct file_request *request) {
    const uint8_t *from = request->second, *end = from + request->second_length;
    const uint8_t *nul = request->second_length > 0 ? memchr(from, 0, request->second_length) : NULL;
    if (!nul) return EINVAL;
    if (!commit_records_parse(nul + 1, (size_t)(end - nul - 1), &c->records) || !is_sensible(&c->records)) return EINVAL;
    uint32_t error = open_root(request->path, request->path_length, &c->to.root);
    return error ? error : open_root(from, (size_t)(nul - from), &c->from.root);
}

/* Makes the directory in which files and links get their content, owner and mode before they get their names. */
static uint32_t make_stage(struct copy *c) {
    uint64_t unique;
    if (getrandom(&unique, sizeof unique, 0) != sizeof unique) return EIO;
    snprintf(c->stage_name, sizeof c->stage_name, ".brig-stage-%016llx", (unsigned long long)unique);
    if (mkdirat(c->to.root, c->stage_name, 0700) != 0) return (uint32_t)errno;
    c->to.stage = openat(c->to.root, c->stage_name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    return c->to.stage < 0 ? (uint32_t)errno : 0;
}

static uint32_t remove_stage(struct copy *c) {
    if (c->to.stage < 0) return 0;
    if (unlinkat(c->to.stage, NEW, 0) != 0 && errno == EISDIR) unlinkat(c->to.stage, NEW, AT_REMOVEDIR);
    return unlinkat(c->to.root, c->stage_name, AT_REMOVEDIR) == 0 ? 0 : (uint32_t)errno;
}

static void close_all(struct copy *c) {
    place_forget(&c->to);
    place_forget(&c->from);
    if (c->to.stage >= 0) close(c->to.stage);
    if (c->to.root >= 0) close(c->to.root);
    if (c->from.root >= 0) close(c->from.root);
    commit_records_free(&c->records);
}

/* ---- one path ---------------------------------------------------------------------------------------------------- */

static bool has_gone(uint32_t error) { return error == ENOENT || error == ENOTDIR || error == ELOOP || error == ESTALE; }

/* Sets `fd` to -1 if the path is no regular file any more. Opens nothing else, because the writer of a FIFO would notice that. */
static uint32_t open_source(struct copy *c, const char *path, int *fd) {
    struct place place;
    struct stat st;
    char self[64];
    *fd = -1;
    uint32_t error = place_find(&c->from, path, &place);
    if (error) return has_gone(error) ? 0 : error;
    int found = openat(place.directory, place.name, O_PATH | O_NOFOLLOW | O_CLOEXEC);
    if (found < 0) return has_gone((uint32_t)errno) ? 0 : (uint32_t)errno;
    snprintf(self, sizeof self, "/proc/self/fd/%d", found);
    if (fstat(found, &st) != 0) error = (uint32_t)errno;
    else if (S_ISREG(st.st_mode) && (*fd = open(self, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC)) < 0) error = (uint32_t)errno;
    close(found);
    return error;
}

static uint32_t remove_there(const struct copy *c, struct place place) {
    if (fchdir(place.directory) != 0) return (uint32_t)errno;
    uint32_t error = file_remove(c->job, place.name, REMOVE_RECURSIVE | REMOVE_MISSING_IS_FINE);
    return chdir("/") == 0 || error ? error : (uint32_t)errno;
}

/* Installs what is in the stage. A rename replaces only a file by a file, so anything else is removed before. */
static uint32_t install(const struct copy *c, struct place place, bool is_directory) {
    struct stat now;
    bool is_there = place_look(place, &now);
    if (!is_there && errno != 0) return (uint32_t)errno;
    uint32_t error = is_there && (is_directory || S_ISDIR(now.st_mode)) ? remove_there(c, place) : 0;
    if (!error && renameat(c->to.stage, NEW, place.directory, place.name) != 0) error = (uint32_t)errno;
    return error;
}

static uint32_t copy_file(struct copy *c, const struct commit_record *record, bool *is_left_out) {
    struct stat st;
    int from, to = -1;
    uint32_t error = open_source(c, record->path, &from);
    *is_left_out = !error && from < 0;
    if (from < 0) return error;
    to = openat(c->to.stage, NEW, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, record->mode & 0777);
    if (to < 0) error = (uint32_t)errno;
    if (!error) error = copy_content(c->job, from, to, record->size, &c->bytes_left);
    if (!error) error = commit_prepare_file(to, record, &st);
    if (to >= 0 && close(to) != 0 && !error) error = (uint32_t)errno;
    close(from);
    return error;
}

static bool is_directory_there(struct place place) {
    struct stat now;
    return place_look(place, &now) && S_ISDIR(now.st_mode);
}

static uint32_t make_path(struct copy *c, const struct commit_record *record, bool *is_left_out) {
    struct place place;
    struct stat st;
    bool is_directory = record->action == COMMIT_MKDIR, is_removal = record->action == COMMIT_REMOVE;
    uint32_t error = place_find(&c->to, record->path, &place);
    if (is_removal) return error ? (has_gone(error) ? 0 : error) : remove_there(c, place);
    if (error || (is_directory && is_directory_there(place))) return error;
    error = record->action == COMMIT_PUT ? copy_file(c, record, is_left_out) : commit_make(c->to.stage, NEW, record, &st);
    return error || *is_left_out ? error : install(c, place, is_directory);
}

/* ---- all of them ------------------------------------------------------------------------------------------------- */

static uint32_t flush_states(struct copy *c) {
    size_t size = c->states * COPY_STATE_BYTES;
    c->states = 0;
    return size == 0 || write_all(c->job->stream, c->output, size) == 0 ? 0 : (uint32_t)errno;
}

/* Reports the state of a copied path. By the states of files and links, the host notices later changes. */
static uint32_t tell_state(struct copy *c, const struct commit_record *record, bool is_left_out) {
    uint8_t *state = c->output + c->states++ * COPY_STATE_BYTES;
    memset(state, 0, COPY_STATE_BYTES);
    state[0] = is_left_out ? COPY_LEFT_OUT : COPY_DONE;
    if (!is_left_out && (record->action == COMMIT_PUT || record->action == COMMIT_SYMLINK)) {
        struct place place;
        struct stat st;
        uint32_t error = place_find(&c->to, record->path, &place);
        if (!error && !place_look(place, &st)) error = errno ? (uint32_t)errno : ENOENT;
        if (error) return error;
        put64(state + 8, (uint64_t)st.st_ino);
        put64(state + 16, (uint64_t)st.st_size);
        put64(state + 24, (uint64_t)file_time(st.st_ctim));
        if (file_time(st.st_ctim) > c->changed_at) c->changed_at = file_time(st.st_ctim);
    }
    return c->states == STATES_AT_ONCE ? flush_states(c) : 0;
}

/* Sets the mode and time of a directory. This comes last, because its time changes with every name in it. */
static uint32_t finish_directory(struct copy *c, const struct commit_record *record) {
    struct place place;
    struct timespec mtime = file_timespec(record->mtime);
    uint32_t error = record->action == COMMIT_MKDIR ? place_find(&c->to, record->path, &place) : 0;
    return error || record->action != COMMIT_MKDIR ? error : place_set_directory(place, record->mode, &mtime);
}

/* Waits until file times move on: a change with the same time as the last copy would not be noticed. */
static void wait_for_tick(const struct copy *c) {
    struct timespec now;
    for (int i = 0; i < TICK_ATTEMPTS && clock_gettime(CLOCK_REALTIME_COARSE, &now) == 0 && file_time(now) <= c->changed_at; i++)
        nanosleep(&(struct timespec){.tv_nsec = TICK_PAUSE_NS}, NULL);
}

static uint32_t copy_all(struct copy *c, uint32_t *at) {
    uint32_t error = make_stage(c);
    for (*at = 0; !error && *at < c->records.count; ++*at) {
        const struct commit_record *record = &c->records.all[*at];
        bool is_left_out = false;
        error = *c->job->cancelled ? ECANCELED : make_path(c, record, &is_left_out);
        if (!error) error = tell_state(c, record, is_left_out);
        if (error) return error;
    }
    while (!error && *at > 0) error = finish_directory(c, &c->records.all[--*at]);
    return error;
}

uint32_t copy_run(const struct file_job *job, const struct file_request *request, struct file_result *result) {
    static struct copy c;
    uint32_t at = 0;
    c = (struct copy){.job = job, .to = {-1, -1, -1, ""}, .from = {-1, -1, -1, ""}, .bytes_left = request->length, .changed_at = INT64_MIN};
    uint32_t error = take_request(&c, request), failed = NO_RECORD;
    if (!error) {
        error = copy_all(&c, &at);
        if (error && c.to.stage >= 0 && at < c.records.count) failed = at;
        uint32_t not_removed = remove_stage(&c);
        if (!error) error = not_removed;
    }
    if (!error) error = flush_states(&c);
    if (!error) wait_for_tick(&c);
    put64(result->bytes, request->length - c.bytes_left);
    put32(result->bytes + 8, failed);
    put32(result->bytes + 12, 0);
    result->length = COPY_RESULT_BYTES;
    close_all(&c);
    return error;
}
