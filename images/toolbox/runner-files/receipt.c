#define _GNU_SOURCE
#include "receipt.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <time.h>
#include <unistd.h>

#include "receipt-known.h"
#include "receipt-list.h"
#include "receipt-rules.h"
#include "receipt-strip.h"
#include "repository-parts.h"

#define DEPTH_MAX 200
#define CLOCK_CHECK 256

struct walk {
    const volatile uint32_t *cancelled;
    struct timespec session_start; /* a file that has not changed since then is not of this session */
    uint64_t deadline_ms;
    uid_t user;
    bool strips;
    const char *skipped; /* paths with line breaks between them */
    struct known_directories known;
    struct rules rules;
    struct receipt_list list;
    uint64_t seen;
    uint8_t unfinished;
    char path[PATH_MAX];
    size_t length, name_of_root; /* of the path, and where in it the root's own name begins */
};

/* Facts about a directory that follow from the way that led to it. */
struct level {
    int depth;
    uint32_t below;   /* the rule about everything below it, or 0 */
    bool has_changed; /* it or a directory above it, but for the root */
    bool has_arrived; /* it got its name after the session began, or has been replaced: everything in it is new at its place */
};

static uint64_t clock_ms(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000 + (uint64_t)t.tv_nsec / 1000000;
}

static bool changed(const struct walk *w, const struct stat *st) {
    if (st->st_ctim.tv_sec != w->session_start.tv_sec) return st->st_ctim.tv_sec > w->session_start.tv_sec;
    return st->st_ctim.tv_nsec >= w->session_start.tv_nsec;
}

static const char *relative(const struct walk *w) { return w->path + w->name_of_root; }
static size_t relative_length(const struct walk *w) { return w->length - w->name_of_root; }

static bool is_telling(const struct walk *w) {
    return rules_below(&w->rules, relative(w), relative_length(w)) || rules_by_way_of(&w->rules, relative(w), relative_length(w));
}

/* The rule about the file that is here, or 0. A link may also stand for a directory, and so for everything in it. */
static uint32_t rule_here(const struct walk *w, const struct stat *st, const struct level *level) {
    const char *path = relative(w);
    size_t length = relative_length(w);
    uint32_t rule = rules_first(level->below, rules_of_file(&w->rules, path, length));
    if (S_ISLNK(st->st_mode)) {
        uint32_t directory = rules_first(rules_below(&w->rules, path, length), rules_by_way_of(&w->rules, path, length));
        rule = rules_first(rule, directory);
    }
    return w->rules.is_exempt[rule] ? 0 : rule;
}

static bool has_capabilities(const struct walk *w) { return lgetxattr(w->path, "security.capability", NULL, 0) > 0; }

static void judge(struct walk *w, int directory, const char *name, const struct stat *st, const struct level *level) {
    uint16_t why = 0;
    bool is_file = S_ISREG(st->st_mode);
    uint32_t rule = is_file || S_ISLNK(st->st_mode) ? rule_here(w, st, level) : 0;
    if (rule) why |= RECEIPT_RUNS;
    if (changed(w, st)) {
        if (is_file && st->st_mode & (S_ISUID | S_ISGID)) why |= RECEIPT_SETID;
        if (S_ISCHR(st->st_mode) || S_ISBLK(st->st_mode)) why |= RECEIPT_DEVICE;
        if (is_file && st->st_mode & 0111 && has_capabilities(w)) why |= RECEIPT_CAPABILITIES;
        if (st->st_uid != w->user) why |= RECEIPT_FOREIGN;
    }
    if (strcasecmp(name, ".git") == 0) why |= RECEIPT_REPOSITORY;
    if (!why) return;
    if (w->strips) why |= receipt_strip(directory, name, st, why);
    list_add(&w->list, w->path, st, why, rule);
}

static bool is_skipped(const struct walk *w) {
    for (const char *at = w->skipped; at && *at;) {
        size_t length = strcspn(at, "\n");
        if (length == w->length && memcmp(at, w->path, length) == 0) return true;
        at += length + (at[length] == '\n');
    }
    return false;
}

static bool goes_on(struct walk *w) {
    if (w->unfinished == RECEIPT_NO_TIME) return false;
    if (++w->seen % CLOCK_CHECK == 0 && (*w->cancelled || clock_ms() > w->deadline_ms)) w->unfinished = RECEIPT_NO_TIME;
    return w->unfinished != RECEIPT_NO_TIME;
}

static void note_closed(struct walk *w) {
    if (w->unfinished == RECEIPT_FINISHED) w->unfinished = RECEIPT_CLOSED;
}

static struct level level_below(const struct walk *w, const struct level *above, const struct stat *st) {
    struct level level = {.depth = above->depth + 1, .has_changed = above->has_changed || changed(w, st)};
    level.below = rules_first(above->below, rules_below(&w->rules, relative(w), relative_length(w)));
    level.has_arrived = above->has_arrived || (level.has_changed && is_telling(w) && !known_has(&w->known, w->path, w->length, st->st_ino));
    return level;
}

static void walk_directory(struct walk *w, int fd, const struct level *level);

static void enter(struct walk *w, int directory, const char *name, const struct level *level) {
    int fd = level->depth <= DEPTH_MAX ? openat(directory, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC) : -1;
    if (fd >= 0) walk_directory(w, fd, level);
    else note_closed(w);
}

/* The contents of one directory, besides files that are judged and directories that are entered at once. */
struct contents {
    unsigned repository; /* its parts, as bits */
    bool has_others;     /* directories that are entered later */
};

static bool look_at(struct walk *w, int directory, const char *name, struct stat *st) {
    if (is_skipped(w)) return false;
    if (fstatat(directory, name, st, AT_SYMLINK_NOFOLLOW) == 0) return true;
    if (errno != ENOENT) note_closed(w);
    return false;
}

static void judge_entry(struct walk *w, int directory, const char *name, const struct level *level, struct contents *contents) {
    struct stat st;
    if (!look_at(w, directory, name, &st)) return;
    contents->repository |= repository_part(name);
    if (changed(w, &st) || level->has_arrived) judge(w, directory, name, &st, level);
    if (!S_ISDIR(st.st_mode)) return;
    if (!level->below && !is_telling(w)) {
        contents->has_others = true;
        return;
    }
    struct level below = level_below(w, level, &st);
    enter(w, directory, name, &below);
}

static void enter_other(struct walk *w, int directory, const struct dirent *entry, const struct level *level) {
    struct stat st;
    if (entry->d_type != DT_DIR && entry->d_type != DT_UNKNOWN) return;
    if (is_telling(w) || !look_at(w, directory, entry->d_name, &st) || !S_ISDIR(st.st_mode)) return;
    struct level below = level_below(w, level, &st);
    enter(w, directory, entry->d_name, &below);
}

/* Git takes a directory with these names in it for a repository, whatever it is called. */
static void judge_bare(struct walk *w, int fd, const struct level *level, unsigned found) {
    struct stat st;
    if (!repository_is_whole(found) || fstat(fd, &st) != 0 || strcasecmp(strrchr(w->path, '/'), "/.git") == 0) return;
    if (changed(w, &st) || level->has_arrived) list_add(&w->list, w->path, &st, RECEIPT_REPOSITORY, 0);
}

/* Appends the name to the path. False if that is too long. */
static bool go_to(struct walk *w, size_t length, const char *name) {
    size_t size = strlen(name);
    if (length + 1 + size >= sizeof w->path) {
        note_closed(w);
        return false;
    }
    w->path[length] = '/';
    memcpy(w->path + length + 1, name, size + 1);
    w->length = length + 1 + size;
    return true;
}

static void go_back(struct walk *w, size_t length) {
    w->length = length;
    w->path[length] = 0;
}

static struct dirent *next_entry(DIR *directory) {
    struct dirent *entry;
    do {
        errno = 0;
        entry = readdir(directory);
    } while (entry && (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0));
    return entry;
}

/*
 * Closes the descriptor. Directories with notable names are entered first, so that no number of others leaves too little time for them.
 */
static void walk_directory(struct walk *w, int fd, const struct level *level) {
    DIR *directory = fdopendir(fd);
    if (!directory) {
        close(fd);
        note_closed(w);
        return;
    }
    size_t length = w->length;
    struct contents contents = {0};
    struct dirent *entry;
    while ((entry = next_entry(directory)) && goes_on(w)) {
        if (!go_to(w, length, entry->d_name)) continue;
        judge_entry(w, fd, entry->d_name, level, &contents);
        go_back(w, length);
    }
    if (!entry && errno != 0) note_closed(w);
    judge_bare(w, fd, level, contents.repository);
    if (contents.has_others) rewinddir(directory);
    while (contents.has_others && w->unfinished != RECEIPT_NO_TIME && (entry = next_entry(directory))) {
        if (!go_to(w, length, entry->d_name)) continue;
        enter_other(w, fd, entry, level);
        go_back(w, length);
    }
    if (!entry && errno != 0) note_closed(w);
    closedir(directory);
}

static void walk_root(struct walk *w, const char *root, size_t length) {
    if (length == 0 || length >= sizeof w->path || *root != '/') return;
    memcpy(w->path, root, length);
    w->path[length] = 0;
    w->length = length;
    w->name_of_root = (size_t)(strrchr(w->path, '/') + 1 - w->path);
    int fd = open(w->path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    const struct level level = {.below = rules_below(&w->rules, relative(w), relative_length(w))};
    if (fd >= 0) walk_directory(w, fd, &level);
    else note_closed(w);
}

/* Cuts off the lines up to the next empty one. */
static char *take_lines(char **rest) {
    char *lines = *rest, *end = strstr(lines, "\n\n");
    *rest = end ? end + 2 : lines + strlen(lines);
    if (end) *end = 0;
    return lines;
}

static bool begin_walk(struct walk *w, char *parts) {
    char *rest = parts;
    w->skipped = take_lines(&rest);
    const char *rules = take_lines(&rest);
    return rules_read(&w->rules, rules, strlen(rules)) && known_read(&w->known, rest) && list_begin(&w->list, w->rules.count);
}

static void find_all(struct walk *w, const char *roots) {
    for (const char *at = roots; *at;) {
        size_t length = strcspn(at, "\n");
        walk_root(w, at, length);
        at += length + (at[length] == '\n');
    }
}

static void write_result(struct walk *w, int out, struct file_result *result) {
    uint32_t omitted;
    if (!list_write(&w->list, out)) w->unfinished = RECEIPT_NO_STREAM;
    result->length = RECEIPT_RESULT_BYTES + list_counts(&w->list, result->bytes + RECEIPT_RESULT_BYTES, RESULT_MAX - RECEIPT_RESULT_BYTES, &omitted);
    put64(result->bytes, w->seen);
    put32(result->bytes + 8, omitted);
    put32(result->bytes + 12, w->unfinished);
}

uint32_t receipt_run(const struct file_job *job, const struct file_request *request, struct file_result *result) {
    static struct walk w;
    w = (struct walk){.cancelled = job->cancelled, .session_start = job->shared->session_start, .user = (uid_t)request->offset};
    w.deadline_ms = clock_ms() + request->mode;
    w.strips = request->flags & RECEIPT_STRIPS;
    char *roots = strndup((const char *)request->path, request->path_length);
    char *parts = strndup((const char *)request->second, request->second_length);
    uint32_t error = roots && parts && begin_walk(&w, parts) ? 0 : ENOMEM;
    if (!error && w.rules.count > RECEIPT_RULES_MAX) error = EINVAL;
    if (!error) {
        find_all(&w, roots);
        write_result(&w, job->stream, result);
    }
    list_free(&w.list);
    rules_free(&w.rules);
    known_free(&w.known);
    free(roots);
    free(parts);
    return error;
}
