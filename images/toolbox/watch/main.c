/*
 * Watches a directory, and prints a record for each change of what it contains. The host starts it as an ordinary program of the sandbox, with the
 * rights of its user, and gives up a watch by ending it; it also ends by itself when its input does. It is static, so it runs in every image.
 *
 *   watch DIRECTORY         what is directly in the directory
 *   watch DIRECTORY tree    what is in directories below it, too
 *
 * A record is a byte for the kind of change, an unused one, the length of the path as a 16 bit number, and the path, relative to the directory
 * and empty for itself. All numbers are little endian. The first record says that the watch has begun.
 */
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <unistd.h>

#include "io.h"
#include "wire.h"

enum kind {
    BEGUN = 0,
    CREATED = 1,
    WRITTEN = 2,
    REMOVED = 3,
    RENAMED = 4,
    MODE_CHANGED = 5,
    /* Changes came faster than they were read. Nothing comes after this. */
    LOST = 6,
    /* The path is an errno in decimal. Nothing comes after this. */
    FAILED = 7,
};

enum { HEAD_BYTES = 4, EVENTS_BYTES = 64 << 10 };

static const uint32_t wanted = IN_CREATE | IN_MODIFY | IN_DELETE | IN_MOVED_FROM | IN_MOVED_TO | IN_ATTRIB | IN_ONLYDIR;

/* ---- what is told to the host ------------------------------------------------------------------------------------- */

static uint8_t told[EVENTS_BYTES];
static size_t told_bytes;

static void send_told(void) {
    if (write_all(STDOUT_FILENO, told, told_bytes) != 0) exit(1);
    told_bytes = 0;
}

static void tell(enum kind kind, const char *path) {
    size_t length = strlen(path);
    if (told_bytes + HEAD_BYTES + length > sizeof told) send_told();
    uint8_t *at = told + told_bytes;
    at[0] = (uint8_t)kind;
    at[1] = 0;
    put16(at + 2, (uint16_t)length);
    memcpy(at + HEAD_BYTES, path, length);
    told_bytes += HEAD_BYTES + length;
}

static _Noreturn void fail(int error) {
    char number[16];
    snprintf(number, sizeof number, "%d", error);
    tell(FAILED, number);
    send_told();
    exit(1);
}

/* ---- which directories are watched -------------------------------------------------------------------------------- */

/* The kernel gives out rising numbers, so that the list is in order unless they begin anew. */
struct directory {
    int watch;
    char *path; /* relative; empty for the one that was asked for */
};

static struct directory *directories;
static size_t directory_count, directory_room;
static int inotify;
static bool is_tree;
static const char *top;

/* The first place whose watch is not smaller. */
static size_t place_of(int watch) {
    size_t low = 0, high = directory_count;
    while (low < high) {
        size_t middle = (low + high) / 2;
        if (directories[middle].watch < watch) low = middle + 1;
        else high = middle;
    }
    return low;
}

static struct directory *directory_of(int watch) {
    size_t place = place_of(watch);
    return place < directory_count && directories[place].watch == watch ? &directories[place] : NULL;
}

static void remember(int watch, const char *path) {
    char *copy = strdup(path);
    if (!copy) fail(ENOMEM);
    struct directory *known = directory_of(watch);
    if (known) {
        free(known->path);
        known->path = copy;
        return;
    }
    if (directory_count == directory_room) {
        directory_room = directory_room ? 2 * directory_room : 64;
        directories = realloc(directories, directory_room * sizeof *directories);
        if (!directories) fail(ENOMEM);
    }
    size_t place = place_of(watch);
    memmove(directories + place + 1, directories + place, (directory_count - place) * sizeof *directories);
    directories[place] = (struct directory){watch, copy};
    directory_count++;
}

static void forget(int watch) {
    struct directory *known = directory_of(watch);
    if (!known) return;
    free(known->path);
    size_t place = (size_t)(known - directories);
    directory_count--;
    memmove(known, known + 1, (directory_count - place) * sizeof *directories);
}

static bool join(char *to, const char *directory, const char *name) {
    int length = snprintf(to, PATH_MAX, "%s%s%s", directory, *directory && *name ? "/" : "", name);
    return length < PATH_MAX;
}

/* False for a directory that is gone already, or that nobody may look into. */
static bool add(const char *path) {
    char whole[PATH_MAX];
    if (!join(whole, top, path)) return false;
    int watch = inotify_add_watch(inotify, whole, wanted | (*path ? IN_DONT_FOLLOW : IN_DELETE_SELF | IN_MOVE_SELF));
    if (watch >= 0) remember(watch, path);
    else if (errno == ENOSPC || errno == ENOMEM || !*path) fail(errno);
    return watch >= 0;
}

/* Directories whose entries have yet to be looked at. */
struct paths {
    char **all;
    size_t count, room;
};

static void push(struct paths *paths, const char *path) {
    if (paths->count == paths->room) {
        paths->room = paths->room ? 2 * paths->room : 64;
        paths->all = realloc(paths->all, paths->room * sizeof *paths->all);
    }
    char *copy = paths->all ? strdup(path) : NULL;
    if (!copy) fail(ENOMEM);
    paths->all[paths->count++] = copy;
}

static void look_at(const char *path, const char *name, bool is_new, struct paths *rest) {
    char inner[PATH_MAX], whole[PATH_MAX];
    struct stat st;
    if (!join(inner, path, name) || !join(whole, top, inner) || lstat(whole, &st) != 0) return;
    if (is_new) {
        tell(CREATED, inner);
        if (S_ISREG(st.st_mode) && st.st_size > 0) tell(WRITTEN, inner);
    }
    if (S_ISDIR(st.st_mode)) push(rest, inner);
}

/*
 * Watches a directory and all below it. In a new one, what is there before the watch has begun is told as created; what comes in that very
 * moment may be told twice, but nothing is missed.
 */
static void add_tree(const char *begin, bool is_new) {
    struct paths rest = {0};
    push(&rest, begin);
    while (rest.count > 0) {
        char *path = rest.all[--rest.count], whole[PATH_MAX];
        DIR *directory = add(path) && join(whole, top, path) ? opendir(whole) : NULL;
        struct dirent *entry;
        while (directory && (entry = readdir(directory))) {
            bool is_own = strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0;
            bool can_be_left_out = !is_new && entry->d_type != DT_DIR && entry->d_type != DT_UNKNOWN;
            if (!is_own && !can_be_left_out) look_at(path, entry->d_name, is_new, &rest);
        }
        if (directory) closedir(directory);
        free(path);
    }
    free(rest.all);
}

static bool is_at_or_below(const char *path, const char *other) {
    size_t length = strlen(other);
    return strncmp(path, other, length) == 0 && (path[length] == 0 || path[length] == '/');
}

static void leave_tree(const char *begin) {
    for (size_t i = 0; i < directory_count; i++)
        if (is_at_or_below(directories[i].path, begin)) inotify_rm_watch(inotify, directories[i].watch);
}

/* The directories stay watched. What happened in them after the move is said after it, and so gets the new path. */
static void move_tree(const char *from, const char *to) {
    for (size_t i = 0; i < directory_count; i++) {
        struct directory *directory = &directories[i];
        if (!is_at_or_below(directory->path, from)) continue;
        char *path;
        if (asprintf(&path, "%s%s", to, directory->path + strlen(from)) < 0) fail(ENOMEM);
        if (strlen(path) >= PATH_MAX) fail(ENAMETOOLONG);
        free(directory->path);
        directory->path = path;
    }
}

/* A directory that has left its place, until it is known whether it came to another one of the tree. */
static struct {
    uint32_t cookie;
    char path[PATH_MAX];
} moving;

static void directory_leaves(const char *path, uint32_t cookie) {
    if (moving.cookie) leave_tree(moving.path);
    moving.cookie = cookie;
    strcpy(moving.path, path);
}

static void directory_comes(const char *path, uint32_t cookie) {
    if (!moving.cookie || moving.cookie != cookie) return add_tree(path, false);
    move_tree(moving.path, path);
    moving.cookie = 0;
}

/* Nothing more has happened: it has left the tree. */
static void nothing_comes(void) {
    if (moving.cookie) leave_tree(moving.path);
    moving.cookie = 0;
}

/* ---- what the kernel says ----------------------------------------------------------------------------------------- */

/* How the sandbox's own file operations name a new content until it takes its place. Nobody asked for that file. */
static bool is_temporary(const char *name) {
    return strncmp(name, ".brig-", 6) == 0 && strspn(name + 6, "0123456789abcdef") == 16 && strcmp(name + 22, ".tmp") == 0;
}

/* A file that has no name yet is called by the number of its inode. The sandbox's own file operations begin with such ones, too. */
static bool is_unnamed(const char *name, const char *inner) {
    char whole[PATH_MAX];
    struct stat st;
    if (name[0] != '#' || !name[1] || name[1 + strspn(name + 1, "0123456789")]) return false;
    return join(whole, top, inner) && lstat(whole, &st) != 0;
}

static void take_named(const struct inotify_event *event, const char *path) {
    /* The cookie of the last file that one of the sandbox's own operations has moved away from its temporary name. */
    static uint32_t written;
    char inner[PATH_MAX];
    if (!join(inner, path, event->name)) return;
    bool is_directory = event->mask & IN_ISDIR;
    if (is_temporary(event->name)) {
        if (event->mask & IN_MOVED_FROM) written = event->cookie;
        return;
    }
    if (event->mask & (IN_MODIFY | IN_ATTRIB) && is_unnamed(event->name, inner)) return;
    if (event->mask & (IN_CREATE | IN_MOVED_TO)) {
        tell(CREATED, inner);
        if (event->mask & IN_MOVED_TO && written && event->cookie == written) tell(WRITTEN, inner);
        if (is_directory && is_tree && event->mask & IN_MOVED_TO) directory_comes(inner, event->cookie);
        else if (is_directory && is_tree) add_tree(inner, true);
    }
    if (event->mask & IN_MODIFY) tell(WRITTEN, inner);
    if (event->mask & IN_ATTRIB) tell(MODE_CHANGED, inner);
    if (event->mask & IN_DELETE) tell(REMOVED, inner);
    if (event->mask & IN_MOVED_FROM) {
        tell(RENAMED, inner);
        if (is_directory && is_tree) directory_leaves(inner, event->cookie);
    }
}

/* False once the directory itself has left its place. */
static bool take_event(const struct inotify_event *event) {
    if (event->mask & IN_Q_OVERFLOW) {
        tell(LOST, "");
        return false;
    }
    struct directory *directory = directory_of(event->wd);
    if (!directory) return true;
    bool is_top = !*directory->path;
    if (event->mask & IN_IGNORED) {
        forget(event->wd);
        return !is_top;
    }
    if (event->len > 0) {
        char path[PATH_MAX];
        strcpy(path, directory->path); /* the list may be moved while it is used */
        take_named(event, path);
    } else if (is_top && event->mask & (IN_DELETE_SELF | IN_MOVE_SELF)) {
        tell(event->mask & IN_DELETE_SELF ? REMOVED : RENAMED, "");
        return false;
    }
    return true;
}

static bool take_events(void) {
    static char events[EVENTS_BYTES] __attribute__((aligned(__alignof__(struct inotify_event))));
    ssize_t size = read(inotify, events, sizeof events);
    if (size < 0 && errno == EINTR) return true;
    if (size <= 0) fail(size < 0 ? errno : EIO);
    bool goes_on = true;
    for (ssize_t at = 0; at < size && goes_on;) {
        const struct inotify_event *event = (const struct inotify_event *)(events + at);
        goes_on = take_event(event);
        at += (ssize_t)(sizeof *event + event->len);
    }
    send_told();
    return goes_on;
}

int main(int argc, char **argv) {
    is_tree = argc == 3 && strcmp(argv[2], "tree") == 0;
    if (argc != 2 && !is_tree) {
        fprintf(stderr, "usage: watch DIRECTORY [tree]\n");
        return 2;
    }
    top = argv[1];
    inotify = inotify_init1(IN_CLOEXEC);
    if (inotify < 0) fail(errno);
    if (is_tree) add_tree("", false);
    else add("");
    tell(BEGUN, "");
    send_told();
    struct pollfd sources[] = {{.fd = inotify, .events = POLLIN}, {.fd = STDIN_FILENO, .events = POLLIN}};
    for (;;) {
        int ready = poll(sources, 2, moving.cookie ? 0 : -1);
        if (ready < 0 && errno != EINTR) fail(errno);
        if (ready <= 0) {
            nothing_comes();
            continue;
        }
        if (sources[1].revents) return 0;
        if (!take_events()) return 0;
    }
}
