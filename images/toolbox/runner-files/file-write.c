#define _GNU_SOURCE
#include "file-write.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include "file-stat.h"
#include "io.h"
#include "wire.h"

#define COPY_BYTES (64u << 10)
#define MAX_LINKS 40

/* Replaces a path that ends in a symbolic link by the path of the file, so that a write does not replace the link. */
static uint32_t follow_links(char *path) {
    for (int i = 0; i < MAX_LINKS; i++) {
        char target[PATH_MAX];
        ssize_t n = readlink(path, target, sizeof target - 1);
        if (n < 0) return errno == EINVAL || errno == ENOENT ? 0 : (uint32_t)errno;
        target[n] = 0;
        char *slash = strrchr(path, '/');
        size_t keep = target[0] == '/' || !slash ? 0 : (size_t)(slash - path) + 1;
        if (keep + (size_t)n >= PATH_MAX) return ENAMETOOLONG;
        memcpy(path + keep, target, (size_t)n + 1);
    }
    return ELOOP;
}

static uint32_t copy_input(const struct file_job *job, int fd) {
    static uint8_t chunk[COPY_BYTES];
    for (;;) {
        ssize_t n = read(job->stream, chunk, sizeof chunk);
        if (n < 0 && errno == EINTR) continue;
        if (n < 0) return (uint32_t)errno;
        if (*job->cancelled) return ECANCELED; /* the stream may have ended before the data did */
        if (n == 0) return 0;
        if (write_all(fd, chunk, (size_t)n) != 0) return (uint32_t)errno;
    }
}

/* Fails with EINVAL if the input ends earlier. */
static uint32_t take_exactly(const struct file_job *job, uint8_t *bytes, size_t size) {
    for (size_t taken = 0; taken < size;) {
        ssize_t n = read(job->stream, bytes + taken, size - taken);
        if (n < 0 && errno == EINTR) continue;
        if (n < 0) return (uint32_t)errno;
        if (*job->cancelled) return ECANCELED;
        if (n == 0) return EINVAL;
        taken += (size_t)n;
    }
    return 0;
}

/* The gaps between the extents, and the rest behind the last one, become holes. */
static uint32_t write_extents(const struct file_job *job, int fd) {
    static uint8_t chunk[EXTENT_BYTES_MAX];
    for (uint64_t end = 0;;) {
        uint8_t head[EXTENT_HEAD_BYTES];
        uint32_t error = take_exactly(job, head, sizeof head);
        if (error) return error;
        uint64_t offset = get64(head);
        uint32_t length = get32(head + 8);
        if (offset < end || offset > INT64_MAX - EXTENT_BYTES_MAX || length > sizeof chunk) return EINVAL;
        if (length == 0) return ftruncate(fd, (off_t)offset) == 0 ? 0 : (uint32_t)errno;
        error = take_exactly(job, chunk, length);
        if (error) return error;
        if (lseek(fd, (off_t)offset, SEEK_SET) < 0 || write_all(fd, chunk, length) != 0) return (uint32_t)errno;
        end = offset + length;
    }
}

/* The new content of a file, in the same directory, until it takes the file's place. */
struct temporary {
    char name[PATH_MAX];
    int fd;
    bool is_named;
};

/* The name is random, so that neither a command nor an earlier session can have taken it. */
static bool choose_name(struct temporary *new, const char *path) {
    const char *slash = strrchr(path, '/');
    int directory = slash ? (int)(slash - path) + 1 : 0;
    uint64_t unique;
    if (getrandom(&unique, sizeof unique, 0) != sizeof unique) return false;
    int length = snprintf(new->name, sizeof new->name, "%.*s.brig-%016llx.tmp", directory, path, (unsigned long long)unique);
    if (length < (int)sizeof new->name) return true;
    errno = ENAMETOOLONG;
    return false;
}

/* A file without a name, if the file system has those: nothing is left of it when this process or its container is killed. */
static bool open_temporary(struct temporary *new, const char *path) {
    if (!choose_name(new, path)) return false;
    char *base = strrchr(new->name, '/') + 1, first = *base;
    *base = 0;
    new->fd = open(new->name, O_WRONLY | O_TMPFILE | O_CLOEXEC, 0600);
    *base = first;
    new->is_named = new->fd < 0;
    if (new->is_named) new->fd = open(new->name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    return new->fd >= 0;
}

static bool give_name(struct temporary *new) {
    char self[64];
    snprintf(self, sizeof self, "/proc/self/fd/%d", new->fd);
    if (!new->is_named) new->is_named = linkat(AT_FDCWD, self, AT_FDCWD, new->name, AT_SYMLINK_FOLLOW) == 0;
    return new->is_named;
}

static uint32_t take_place(const struct temporary *new, const char *path, bool only_if_free) {
    int failed = only_if_free ? link(new->name, path) : rename(new->name, path);
    return failed ? (uint32_t)errno : 0;
}

static uint32_t take_input(const struct file_job *job, const struct file_request *request, int fd) {
    if (!(request->flags & WRITE_INLINE)) return request->flags & WRITE_EXTENTS ? write_extents(job, fd) : copy_input(job, fd);
    if (*job->cancelled) return ECANCELED;
    return write_all(fd, request->second, request->second_length) == 0 ? 0 : (uint32_t)errno;
}

static uint32_t replace_file(const struct file_job *job, const struct file_request *request, const char *path) {
    struct stat st;
    bool exists = file_stat(request, path, &st) == 0;
    if (!exists && errno != ENOENT) return (uint32_t)errno;
    bool only_if_free = request->flags & WRITE_NEW;
    if (exists && only_if_free) return EEXIST;
    uint32_t irregular = exists ? file_refuse_irregular(st.st_mode) : 0;
    if (irregular) return irregular;
    /* A rename would replace a read-only file too. Writing to it would fail, so this fails as well. */
    if (exists && access(path, W_OK) != 0) return (uint32_t)errno;

    struct temporary new;
    if (!open_temporary(&new, path)) return (uint32_t)errno;
    uint32_t error = take_input(job, request, new.fd);
    if (!error && fchmod(new.fd, exists ? st.st_mode & 0777 : request->mode & 0777) != 0) error = (uint32_t)errno;
    if (!error && !give_name(&new)) error = (uint32_t)errno;
    if (close(new.fd) != 0 && !error) error = (uint32_t)errno;
    if (!error) error = take_place(&new, path, only_if_free);
    if (new.is_named && (error || only_if_free)) unlink(new.name);
    return error;
}

uint32_t file_write(const struct file_job *job, const struct file_request *request, char *path) {
    uint32_t error = request->flags & PATH_WITHOUT_LINKS ? 0 : follow_links(path);
    return error ? error : replace_file(job, request, path);
}
