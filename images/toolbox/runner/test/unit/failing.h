/*
 * Lets a test choose one system call of an operation that fails, or at which the process exits as if it had been killed. The functions defined here
 * replace those of the C library with the same names in the whole program.
 */
#ifndef BRIG_UNIT_FAILING_H
#define BRIG_UNIT_FAILING_H

#include <dirent.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <sys/file.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "require.h"

#define DEATH 9

static struct {
    bool is_armed, dies;
    int left, error;         /* the calls until then, and with what it fails */
    const char *path;        /* only calls with this path count; NULL for all calls */
    const char *name;        /* only calls of this function count; NULL for all of them */
    void (*meanwhile)(void); /* what another process does just before the chosen call, which then is made; NULL if the call fails */
    const char *failed;      /* the name of the function that has failed; NULL if none has */
    char failed_at[256];     /* the path that it was called with, if it has one */
} failing;

/* The call with this number, counted from 0 for the next call, fails with this errno. */
static inline void fail_at(int number, int error) {
    memset(&failing, 0, sizeof failing);
    failing.left = number;
    failing.error = error;
    failing.is_armed = true;
}

static inline void die_at(int number) {
    fail_at(number, 0);
    failing.dies = true;
}

/* The next call with this path fails with this errno. */
static inline void fail_for(const char *path, int error) {
    fail_at(0, error);
    failing.path = path;
}

/* The call of this function with this number, counted from 0, fails with this errno. */
static inline void fail_in(const char *name, int number, int error) {
    fail_at(number, error);
    failing.name = name;
}

/* Calls `act`, which does what another process could do, just before this call, which is then made as usual. Its number counts calls with this path. */
static inline void act_before(const char *name, const char *path, int number, void (*act)(void)) {
    fail_in(name, number, 0);
    failing.path = path;
    failing.meanwhile = act;
}

/* Ends the choice. True if the operation came to the chosen call. */
static inline bool has_failed(void) {
    failing.is_armed = false;
    return failing.failed != NULL;
}

static bool fails(const char *name, const char *path) {
    if (!failing.is_armed || (failing.path && strcmp(failing.path, path) != 0)) return false;
    if ((failing.name && strcmp(failing.name, name) != 0) || failing.left-- != 0) return false;
    if (failing.dies) _exit(DEATH);
    failing.failed = name;
    snprintf(failing.failed_at, sizeof failing.failed_at, "%s", path);
    if (failing.meanwhile) return failing.meanwhile(), false;
    errno = failing.error;
    return true;
}

static void *library_function(const char *name) {
    void *found = dlsym(RTLD_NEXT, name);
    REQUIRE(found);
    return found;
}

#define LIBRARY(name) ((__typeof__(&name))library_function(#name))

#define MAY_FAIL(type, name, parameters, arguments, path) \
    type name parameters { return fails(#name, path) ? (type)-1 : LIBRARY(name) arguments; }

MAY_FAIL(int, fstat, (int fd, struct stat *st), (fd, st), "")
MAY_FAIL(int, lstat, (const char *path, struct stat *st), (path, st), path)
MAY_FAIL(int, stat, (const char *path, struct stat *st), (path, st), path)
MAY_FAIL(int, fstatat, (int fd, const char *path, struct stat *st, int flags), (fd, path, st, flags), path)
MAY_FAIL(int, fchown, (int fd, uid_t uid, gid_t gid), (fd, uid, gid), "")
MAY_FAIL(int, fchownat, (int fd, const char *path, uid_t uid, gid_t gid, int flags), (fd, path, uid, gid, flags), path)
MAY_FAIL(int, fchmod, (int fd, mode_t mode), (fd, mode), "")
MAY_FAIL(int, chmod, (const char *path, mode_t mode), (path, mode), path)
MAY_FAIL(int, futimens, (int fd, const struct timespec times[2]), (fd, times), "")
MAY_FAIL(int, utimensat, (int fd, const char *path, const struct timespec times[2], int flags), (fd, path, times, flags), path)
MAY_FAIL(int, symlinkat, (const char *target, int fd, const char *path), (target, fd, path), path)
MAY_FAIL(int, mkdirat, (int fd, const char *path, mode_t mode), (fd, path, mode), path)
MAY_FAIL(int, unlinkat, (int fd, const char *path, int flags), (fd, path, flags), path)
MAY_FAIL(int, unlink, (const char *path), (path), path)
MAY_FAIL(int, rmdir, (const char *path), (path), path)
MAY_FAIL(int, renameat, (int from, const char *path, int to, const char *new_path), (from, path, to, new_path), path)
MAY_FAIL(int, rename, (const char *path, const char *new_path), (path, new_path), path)
MAY_FAIL(int, link, (const char *path, const char *new_path), (path, new_path), path)
MAY_FAIL(int, linkat, (int from, const char *path, int to, const char *new_path, int flags), (from, path, to, new_path, flags), path)
MAY_FAIL(int, access, (const char *path, int mode), (path, mode), path)
MAY_FAIL(int, fchdir, (int fd), (fd), "")
MAY_FAIL(int, chdir, (const char *path), (path), path)
MAY_FAIL(int, flock, (int fd, int operation), (fd, operation), "")
MAY_FAIL(int, ftruncate, (int fd, off_t size), (fd, size), "")
MAY_FAIL(off_t, lseek, (int fd, off_t at, int whence), (fd, at, whence), "")
MAY_FAIL(ssize_t, readlink, (const char *path, char *to, size_t size), (path, to, size), path)
MAY_FAIL(ssize_t, readlinkat, (int fd, const char *path, char *to, size_t size), (fd, path, to, size), path)
MAY_FAIL(ssize_t, read, (int fd, void *to, size_t size), (fd, to, size), "")
MAY_FAIL(ssize_t, write, (int fd, const void *from, size_t size), (fd, from, size), "")
MAY_FAIL(ssize_t, pread, (int fd, void *to, size_t size, off_t at), (fd, to, size, at), "")
MAY_FAIL(ssize_t, pwrite, (int fd, const void *from, size_t size, off_t at), (fd, from, size, at), "")

/* A descriptor is free after close(2), also if that has failed. */
int close(int fd) {
    bool has = fails("close", "");
    int done = LIBRARY(close)(fd);
    return has ? (errno = failing.error, -1) : done;
}

ssize_t getrandom(void *to, size_t size, unsigned flags) { return fails("getrandom", "") ? -1 : LIBRARY(getrandom)(to, size, flags); }

static inline void *no_pointer(void) { return NULL; }

DIR *opendir(const char *path) { return fails("opendir", path) ? no_pointer() : LIBRARY(opendir)(path); }
DIR *fdopendir(int fd) { return fails("fdopendir", "") ? no_pointer() : LIBRARY(fdopendir)(fd); }
struct dirent *readdir(DIR *directory) { return fails("readdir", "") ? no_pointer() : LIBRARY(readdir)(directory); }

/* A third argument of this is a mode only if something is made. */
#define MODE_OF(flags, last)                                            \
    va_list rest;                                                       \
    va_start(rest, last);                                               \
    mode_t mode = flags & (O_CREAT | O_TMPFILE) ? va_arg(rest, mode_t) : 0; \
    va_end(rest)

/* Whether open(2) refuses O_TMPFILE, as on a file system that has no unnamed files. */
static bool refuses_unnamed;

int open(const char *path, int flags, ...) {
    MODE_OF(flags, flags);
    if (refuses_unnamed && (flags & O_TMPFILE) == O_TMPFILE) return errno = EOPNOTSUPP, -1;
    return fails("open", path) ? -1 : LIBRARY(open)(path, flags, mode);
}

int openat(int fd, const char *path, int flags, ...) {
    MODE_OF(flags, flags);
    return fails("openat", path) ? -1 : LIBRARY(openat)(fd, path, flags, mode);
}

/* The errno with which a kind of file system refuses a rename for good; 0 if it does not. */
static int (*refuse_rename)(int from, const char *name, int to, const char *new_name, unsigned flags);

/* None of the runner's calls has more arguments than these, but for copy_file_range(2), whose last one is 0. */
long syscall(long number, ...) {
    long a[5];
    va_list rest;
    va_start(rest, number);
    for (int i = 0; i < 5; i++) a[i] = va_arg(rest, long);
    va_end(rest);
    if (fails("syscall", "")) return -1;
    int error = number == SYS_renameat2 && refuse_rename ? refuse_rename((int)a[0], (const char *)a[1], (int)a[2], (const char *)a[3], (unsigned)a[4]) : 0;
    if (error) return errno = error, -1;
    return LIBRARY(syscall)(number, a[0], a[1], a[2], a[3], a[4], 0l);
}

#endif
