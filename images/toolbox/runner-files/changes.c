/*
 * The upper directory of an overlay shows which names were touched. Only the kernel can read there whether a directory hides the one
 * below it or was moved from elsewhere, so that is found out by comparing. If a directory of the merged tree is the base's own directory
 * at that path, it can differ only at the names that the upper directory has. Any other directory is compared name by name.
 */
#define _GNU_SOURCE
#include "changes.h"

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "beneath.h"
#include "changes-record.h"
#include "file-stat.h"
#include "names.h"
#include "same-content.h"
#include "sight.h"

#define NAMES_MAX_BYTES ((size_t)128 << 20)
/* Directories nested deeper than this are closed while one below them is compared, so that descriptors do not run out. */
#define OPEN_LEVELS 64
/* A directory that is being compared. The scan's path begins with the path of this directory. */
struct level {
    struct level *parent;
    int depth;
    size_t path_length;
    bool has[SIDES];
    int fds[SIDES]; /* -1 for a side that does not have the directory, and while a deep level is closed */
    struct timespec changed_at;
    struct names names;
    size_t next;
};

struct scan {
    const struct file_job *job;
    uint8_t flags;
    int roots[SIDES];
    const char *base_path;
    dev_t devices[SIDES];
    const char *left_out, *left_out_end; /* strings, each ending with NUL */
    struct changes_output output;
    struct level *level;
    size_t names_bytes;
    uint64_t not_entered;
    char path[PATH_MAX];
};

/* ---- what is at a name ------------------------------------------------------------------------------------------- */

/* Mount points are left out with all that is below them, because the upper directory does not show what was changed in a mount. */
static bool is_left_out(const struct scan *s) {
    for (const char *at = s->left_out; at < s->left_out_end; at += strlen(at) + 1)
        if (strcmp(at, s->path) == 0) return true;
    return false;
}

/* Sets the path of the scan to a name in the current directory. Returns false if it becomes too long. */
static bool set_path(struct scan *s, const char *name, size_t length) {
    size_t start = s->level->path_length, slash = start > 0;
    if (start + slash + length >= sizeof s->path) return false;
    if (slash) s->path[start] = '/';
    memcpy(s->path + start + slash, name, length);
    s->path[start + slash + length] = 0;
    return true;
}

/* Opens the directories of a deep level again if they were closed meanwhile. */
static uint32_t open_sides(struct scan *s) {
    struct level *level = s->level;
    s->path[level->path_length] = 0;
    for (int side = 0; side < SIDES; side++) {
        if (!level->has[side] || level->fds[side] >= 0) continue;
        level->fds[side] = open_beneath(s->roots[side], s->path, O_PATH);
        if (level->fds[side] >= 0) continue;
        if (is_failure(errno)) return (uint32_t)errno;
        level->has[side] = false; /* the directory is gone or was replaced */
    }
    return 0;
}

static void close_sides(struct level *level) {
    for (int side = 0; side < SIDES; side++) {
        if (level->fds[side] >= 0) close(level->fds[side]);
        level->fds[side] = -1;
    }
}

static bool is_untouched(const struct scan *s, const struct sight *sight) { return !sight->has[UPPER] && sight_is_base_object(sight, s->devices); }

/* ---- changes ----------------------------------------------------------------------------------------------------- */

/* Compares a name that exists in the merged tree and in the base. */
static uint32_t compare(const struct scan *s, const char *name, const struct sight *sight, bool *is_same) {
    const struct stat *now = &sight->st[MERGED], *before = &sight->st[BASE];
    const struct level *level = s->level;
    *is_same = false;
    if ((now->st_mode & S_IFMT) != (before->st_mode & S_IFMT)) return 0;
    const struct named_file one = {level->fds[MERGED], name}, other = {level->fds[BASE], name};
    if (S_ISLNK(now->st_mode)) return compare_targets(one, other, is_same);
    if (now->st_mode == before->st_mode) *is_same = S_ISREG(now->st_mode) ? now->st_size == before->st_size : now->st_rdev == before->st_rdev;
    if (!*is_same || !S_ISREG(now->st_mode) || now->st_size == 0) return 0;
    return compare_content(s->job, one, other, is_same);
}

static const volatile uint32_t *count_cancelled;
static uint64_t counted;

static int count_one(const char *path, const struct stat *st, int type, struct FTW *where) {
    (void)path, (void)st, (void)type;
    counted += where->level > 0;
    return *count_cancelled != 0;
}

static uint64_t count_below(const struct scan *s) {
    char path[2 * PATH_MAX];
    size_t length = strlen(s->base_path);
    if (length >= PATH_MAX) return 0;
    memcpy(path, s->base_path, length);
    path[length] = '/';
    strcpy(path + length + 1, s->path);
    counted = 0;
    count_cancelled = s->job->cancelled;
    nftw(path, count_one, 32, FTW_PHYS | FTW_MOUNT);
    return counted;
}

static int64_t noticed_at(const struct scan *s, const struct sight *sight) {
    if (sight->has[MERGED]) return file_time(sight->st[MERGED].st_ctim);
    return file_time(sight->has[UPPER] ? sight->st[UPPER].st_ctim : s->level->changed_at);
}

static uint32_t report(struct scan *s, const char *name, const struct sight *sight) {
    static char target[PATH_MAX];
    const struct stat *now = sight->has[MERGED] ? &sight->st[MERGED] : NULL, *before = sight->has[BASE] ? &sight->st[BASE] : NULL;
    struct change change = {.path = s->path, .path_length = strlen(s->path), .now = now, .before = before, .changed_at = noticed_at(s, sight)};
    bool is_same = false;
    if (sight_is_directory(sight, MERGED) && sight_is_directory(sight, BASE) && now->st_mode == before->st_mode) return 0;
    if (changes_leave_out(&s->output, &change)) return 0;
    uint32_t error = now && before ? compare(s, name, sight, &is_same) : 0;
    if (error || (is_same && !(s->flags & CHANGES_LIST_SAME))) return error;
    change.kind = is_same ? CHANGE_SAME : !now ? CHANGE_DELETED : before ? CHANGE_MODIFIED : CHANGE_ADDED;
    change.target = target;
    if (now && S_ISLNK(now->st_mode)) error = read_target((struct named_file){s->level->fds[MERGED], name}, target, &change.target_length);
    if (error) return error;
    if (!now && S_ISDIR(before->st_mode) && s->flags & CHANGES_COUNT_BELOW) change.below = count_below(s);
    return changes_write(&s->output, &change);
}

/* ---- the walk ---------------------------------------------------------------------------------------------------- */

static uint32_t open_below(const struct scan *s, struct level *level, const char *name) {
    for (int side = 0; side < SIDES; side++) {
        if (!level->has[side]) continue;
        int directory = s->level ? s->level->fds[side] : s->roots[side];
        level->fds[side] = openat(directory, s->level ? name : ".", O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        if (level->fds[side] < 0 && is_failure(errno)) return (uint32_t)errno;
        level->has[side] = level->fds[side] >= 0;
    }
    return 0;
}

static uint32_t list_side(struct scan *s, struct level *level, enum side side) {
    int fd = openat(level->fds[side], ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd >= 0) return names_add(&level->names, fd, NAMES_MAX_BYTES - s->names_bytes);
    if (is_failure(errno)) return (uint32_t)errno;
    if (errno == EACCES || errno == EPERM) s->not_entered++;
    return 0;
}

/* Enters the directory `name`. If it is the base's own one (`is_base`), only the names that the upper directory has can differ. */
static uint32_t push(struct scan *s, const char *name, const struct sight *sight, bool is_base) {
    struct level *level = calloc(1, sizeof *level), *parent = s->level;
    if (!level) return ENOMEM;
    *level = (struct level){.parent = parent, .path_length = strlen(s->path), .fds = {-1, -1, -1}, .changed_at = sight->st[MERGED].st_ctim};
    level->depth = parent ? parent->depth + 1 : 0;
    for (int side = 0; side < SIDES; side++) level->has[side] = sight_is_directory(sight, (enum side)side);
    /* An overlay does not show what is mounted inside its base, so nothing is compared with that. */
    if (level->has[BASE] && sight->st[BASE].st_dev != s->devices[BASE]) level->has[BASE] = false;
    uint32_t error = open_below(s, level, name);
    for (int side = 0; side < SIDES; side++)
        if (!error && level->has[side] && (is_base ? side == UPPER : side != UPPER)) error = list_side(s, level, (enum side)side);
    names_sort(&level->names);
    s->names_bytes += level->names.bytes;
    if (parent && parent->depth >= OPEN_LEVELS) close_sides(parent);
    s->level = level;
    return error;
}

static void pop(struct scan *s) {
    struct level *level = s->level;
    s->names_bytes -= level->names.bytes;
    s->level = level->parent;
    close_sides(level);
    names_free(&level->names);
    free(level);
}

static uint32_t step(struct scan *s, char *name) {
    size_t length = strlen(name);
    bool goes_down = name[length - 1] == '/';
    if (goes_down) name[--length] = 0;
    struct sight sight;
    uint32_t error = open_sides(s);
    if (!error) error = sight_take(s->level->fds, name, &sight);
    if (error) return error;
    if (!set_path(s, name, length)) {
        s->not_entered += !goes_down;
        return 0;
    }
    if (is_left_out(s) || is_untouched(s, &sight)) return 0;
    if (!goes_down) return sight.has[MERGED] || sight.has[BASE] ? report(s, name, &sight) : 0;
    return sight_is_directory(&sight, MERGED) ? push(s, name, &sight, sight_is_directory(&sight, UPPER) && sight_is_base_object(&sight, s->devices)) : 0;
}

static uint32_t walk(struct scan *s) {
    struct sight root;
    for (int side = 0; side < SIDES; side++) {
        if (fstat(s->roots[side], &root.st[side]) != 0) return (uint32_t)errno;
        s->devices[side] = root.st[side].st_dev;
        root.has[side] = true;
    }
    /* The merged root has the inode number of the upper directory. It still counts as the base's own, since nobody can replace or move it. */
    uint32_t error = push(s, "", &root, true);
    while (!error && s->level) {
        if (*s->job->cancelled) error = ECANCELED;
        else if (s->level->next == s->level->names.count) pop(s);
        else error = step(s, s->level->names.names[s->level->next++]);
    }
    while (s->level) pop(s);
    return error ? error : changes_flush(&s->output);
}

/* The second string of the request: the base, the upper directory, and what to leave out. Each ends with NUL. */
static bool take_paths(struct scan *s, const struct file_request *request, const char *paths[SIDES]) {
    const char *at = (const char *)request->second, *end = at + request->second_length;
    if (at == end || end[-1] != 0) return false;
    for (enum side side = BASE; side < SIDES; side++) {
        if (at == end) return false;
        paths[side] = at;
        at += strlen(at) + 1;
    }
    s->left_out = at;
    s->left_out_end = end;
    s->base_path = paths[BASE];
    return true;
}

static uint32_t open_roots(struct scan *s, const char *const paths[SIDES]) {
    for (int side = 0; side < SIDES; side++) {
        s->roots[side] = open(paths[side], O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        if (s->roots[side] < 0) return (uint32_t)errno;
    }
    return 0;
}

uint32_t changes_run(const struct file_job *job, const struct file_request *request, struct file_result *result) {
    static struct scan s;
    struct timespec started;
    char merged[PATH_MAX];
    const char *paths[SIDES] = {merged};
    s = (struct scan){.job = job, .flags = request->flags, .roots = {-1, -1, -1}};
    if (request->path_length >= sizeof merged) return ENAMETOOLONG;
    memcpy(merged, request->path, request->path_length);
    merged[request->path_length] = 0;
    if (!take_paths(&s, request, paths) || request->offset > INT64_MAX) return EINVAL;
    /* File systems take the times of changes from the coarse clock, so no later change has an earlier time than this. */
    clock_gettime(CLOCK_REALTIME_COARSE, &started);
    changes_output_begin(&s.output, job->stream, (int64_t)request->offset);
    uint32_t error = open_roots(&s, paths);
    if (!error) error = walk(&s);
    for (int side = 0; side < SIDES; side++)
        if (s.roots[side] >= 0) close(s.roots[side]);
    put64(result->bytes, (uint64_t)file_time(started));
    put64(result->bytes + 8, s.output.written);
    put64(result->bytes + 16, s.output.left_out);
    put64(result->bytes + 24, s.not_entered);
    sha256_end(&s.output.left_out_hash, result->bytes + 32);
    result->length = CHANGES_RESULT_BYTES;
    return error;
}
