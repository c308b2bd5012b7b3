/* File operations, run in a worker: the kernel resolves every path here, inside the container and as its user. */
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include "reach.h"
#include "receipt.h"
#include "wire.h"
#include "worker.h"

#define COPY_SIZE (64u << 10)
#define MAX_LINKS 40

static uint8_t type_of(mode_t mode) {
    switch (mode & S_IFMT) {
    case S_IFREG: return ENTRY_FILE;
    case S_IFDIR: return ENTRY_DIRECTORY;
    case S_IFLNK: return ENTRY_SYMLINK;
    case S_IFIFO: return ENTRY_FIFO;
    case S_IFSOCK: return ENTRY_SOCKET;
    case S_IFCHR: return ENTRY_CHAR_DEVICE;
    case S_IFBLK: return ENTRY_BLOCK_DEVICE;
    default: return ENTRY_UNKNOWN;
    }
}

static uint8_t type_of_entry(unsigned char type) {
    switch (type) {
    case DT_REG: return ENTRY_FILE;
    case DT_DIR: return ENTRY_DIRECTORY;
    case DT_LNK: return ENTRY_SYMLINK;
    case DT_FIFO: return ENTRY_FIFO;
    case DT_SOCK: return ENTRY_SOCKET;
    case DT_CHR: return ENTRY_CHAR_DEVICE;
    case DT_BLK: return ENTRY_BLOCK_DEVICE;
    default: return ENTRY_UNKNOWN;
    }
}

/* Where no link is to be followed, its record is the link's own. */
static int stat_of(const struct file_request *request, const char *path, struct stat *st) {
    return request->flags & PATH_WITHOUT_LINKS ? lstat(path, st) : stat(path, st);
}

/* 0, or why a file of this mode is not read or replaced: opening a FIFO would hang, a device may act on being opened. */
static uint32_t refuse_irregular(mode_t mode) {
    if (S_ISREG(mode)) return 0;
    if (S_ISLNK(mode)) return ELOOP;
    return S_ISDIR(mode) ? EISDIR : NOT_REGULAR + type_of(mode);
}

/* ---- read ------------------------------------------------------------------------------------------------------ */

static uint32_t open_regular(const struct file_request *request, const char *path, int *fd, struct stat *st) {
    if (stat_of(request, path, st) != 0) return (uint32_t)errno;
    uint32_t irregular = refuse_irregular(st->st_mode);
    if (irregular) return irregular;
    int no_follow = request->flags & PATH_WITHOUT_LINKS ? O_NOFOLLOW : 0;
    *fd = open(path, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC | no_follow);
    if (*fd < 0) return (uint32_t)errno;
    /* The name may point elsewhere by now. */
    irregular = fstat(*fd, st) == 0 ? refuse_irregular(st->st_mode) : (uint32_t)errno;
    if (irregular) close(*fd);
    return irregular;
}

static uint32_t copy_range(int fd, int out, uint64_t offset, uint64_t length) {
    static uint8_t chunk[COPY_SIZE];
    uint64_t left = length ? length : UINT64_MAX;
    while (left > 0) {
        ssize_t n = pread(fd, chunk, left < sizeof chunk ? (size_t)left : sizeof chunk, (off_t)offset);
        if (n < 0 && errno == EINTR) continue;
        if (n < 0) return (uint32_t)errno;
        if (n == 0) return 0;
        if (write_all(out, chunk, (size_t)n) != 0) return (uint32_t)errno;
        offset += (uint64_t)n;
        left -= (uint64_t)n;
    }
    return 0;
}

static uint32_t read_inline(int fd, uint64_t offset, uint64_t length, struct worker_report *report, uint8_t *result) {
    while (length > 0) {
        ssize_t n = pread(fd, result + report->result_length, (size_t)length, (off_t)offset);
        if (n < 0 && errno == EINTR) continue;
        if (n < 0) return (uint32_t)errno;
        if (n == 0) return 0;
        report->result_length += (uint32_t)n;
        offset += (uint64_t)n;
        length -= (uint64_t)n;
    }
    return 0;
}

/* Where the data begins that is at `offset` or after it. A file system that keeps no account of its holes has none. */
static uint64_t skip_hole(int fd, uint64_t offset, uint64_t size) {
    if (offset >= size) return offset;
    off_t data = lseek(fd, (off_t)offset, SEEK_DATA);
    if (data < 0) return errno == ENXIO ? size : offset;
    return (uint64_t)data > offset ? (uint64_t)data : offset;
}

static bool is_longer_than_asked(const struct file_request *request, uint64_t size) {
    return size > request->offset && size - request->offset > request->length;
}

static uint32_t read_open_file(const struct file_request *request, int fd, int out, struct worker_report *report, uint8_t *result) {
    uint64_t size = get64(result), start = request->offset;
    /* Said before a single byte of it was read: it may be a sparse terabyte. */
    if ((request->flags & READ_ALL_OR_NONE) && is_longer_than_asked(request, size)) return EFBIG;
    if (start > INT64_MAX) return EINVAL;
    if (request->flags & READ_SKIP_HOLE) start = skip_hole(fd, start, size);
    put64(result + 8, start);
    return request->flags & READ_INLINE ? read_inline(fd, start, request->length, report, result) : copy_range(fd, out, start, request->length);
}

static uint32_t read_file(const struct file_request *request, const char *path, int out, struct worker_report *report, uint8_t *result) {
    struct stat st = {0};
    int fd = -1;
    uint32_t error = open_regular(request, path, &fd, &st);
    put64(result, error ? 0 : (uint64_t)st.st_size);
    put64(result + 8, request->offset);
    report->result_length = READ_RESULT_BYTES;
    if (error) return error;
    error = read_open_file(request, fd, out, report, result);
    close(fd);
    return error;
}

/* ---- write ----------------------------------------------------------------------------------------------------- */

/* Follows the links of the last component, so that a write through a link replaces the file and not the link. */
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

static uint32_t copy_input(const struct file_operation_job *job, int fd) {
    static uint8_t chunk[COPY_SIZE];
    for (;;) {
        ssize_t n = read(job->stream, chunk, sizeof chunk);
        if (n < 0 && errno == EINTR) continue;
        if (n < 0) return (uint32_t)errno;
        if (*job->cancelled) return ECANCELED; /* then the end of the stream is not the end of the data */
        if (n == 0) return 0;
        if (write_all(fd, chunk, (size_t)n) != 0) return (uint32_t)errno;
    }
}

/* The new content of a file until it takes the file's place, beside it. */
struct temporary {
    char name[PATH_MAX];
    int fd;
    bool is_named;
};

/* A name that neither a dead session's leftovers nor a command can have taken in advance. */
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

/* Without a name where the file system can do that: then nothing is left of it when this process or its container is killed. */
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

static uint32_t take_input(const struct file_operation_job *job, const struct file_request *request, int fd) {
    if (file_has_input(request)) return copy_input(job, fd);
    if (*job->cancelled) return ECANCELED;
    return write_all(fd, request->second, request->second_length) == 0 ? 0 : (uint32_t)errno;
}

static uint32_t replace_file(const struct file_operation_job *job, const struct file_request *request, const char *path) {
    struct stat st;
    bool exists = stat_of(request, path, &st) == 0;
    if (!exists && errno != ENOENT) return (uint32_t)errno;
    bool only_if_free = request->flags & WRITE_NEW;
    if (exists && only_if_free) return EEXIST;
    uint32_t irregular = exists ? refuse_irregular(st.st_mode) : 0;
    if (irregular) return irregular;
    /* A rename would replace even a file its user has made read-only; a plain write would not, so neither do we. */
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

static uint32_t write_file(const struct file_operation_job *job, const struct file_request *request, char *path) {
    uint32_t error = request->flags & PATH_WITHOUT_LINKS ? 0 : follow_links(path);
    return error ? error : replace_file(job, request, path);
}

/* ---- stat, list ------------------------------------------------------------------------------------------------ */

static uint32_t stat_file(const struct file_request *request, const char *path, struct worker_report *report, uint8_t *result) {
    struct stat st;
    bool is_of_link = request->flags & STAT_LINK_ITSELF;
    if ((is_of_link ? lstat(path, &st) : stat_of(request, path, &st)) != 0) return (uint32_t)errno;
    if (S_ISLNK(st.st_mode) && !is_of_link) return ELOOP;
    memset(result, 0, STAT_RECORD_BYTES);
    result[0] = type_of(st.st_mode);
    put32(result + 4, st.st_mode & 07777);
    put32(result + 8, st.st_uid);
    put32(result + 12, st.st_gid);
    put64(result + 16, (uint64_t)st.st_size);
    put64(result + 24, (uint64_t)st.st_mtim.tv_sec * 1000000000u + (uint64_t)st.st_mtim.tv_nsec);
    put64(result + 32, (uint64_t)st.st_dev);
    put64(result + 40, (uint64_t)st.st_ino);
    ssize_t n = S_ISLNK(st.st_mode) ? readlink(path, (char *)result + STAT_RECORD_BYTES, PATH_MAX) : 0;
    put32(result + 48, n > 0 ? (uint32_t)n : 0);
    report->result_length = STAT_RECORD_BYTES + (n > 0 ? (uint32_t)n : 0);
    return 0;
}

static uint8_t entry_type(DIR *directory, const struct dirent *entry) {
    if (entry->d_type != DT_UNKNOWN) return type_of_entry(entry->d_type);
    struct stat st;
    return fstatat(dirfd(directory), entry->d_name, &st, AT_SYMLINK_NOFOLLOW) == 0 ? type_of(st.st_mode) : ENTRY_UNKNOWN;
}

/* Entries on their way to the host: gathered in `chunk`, of which a full one goes to `out`, where there is one. */
struct listing {
    uint8_t *chunk;
    size_t size, used;
    int out;
};

static uint32_t flush_listing(struct listing *l) {
    if (l->out < 0) return EOVERFLOW;
    if (write_all(l->out, l->chunk, l->used) != 0) return (uint32_t)errno;
    l->used = 0;
    return 0;
}

static uint32_t add_entry(struct listing *l, uint8_t type, const char *name) {
    size_t length = strlen(name);
    uint32_t error = l->used + LIST_ENTRY_HEAD_BYTES + length > l->size ? flush_listing(l) : 0;
    if (error) return error;
    uint8_t *at = l->chunk + l->used;
    at[0] = type;
    at[1] = 0;
    put16(at + 2, (uint16_t)length);
    memcpy(at + LIST_ENTRY_HEAD_BYTES, name, length);
    l->used += LIST_ENTRY_HEAD_BYTES + length;
    return 0;
}

static uint32_t list_entries(DIR *directory, struct listing *l) {
    for (;;) {
        errno = 0;
        struct dirent *entry = readdir(directory);
        if (!entry) return (uint32_t)errno;
        if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0) continue;
        uint32_t error = add_entry(l, entry_type(directory, entry), entry->d_name);
        if (error) return error;
    }
}

static uint32_t list_directory(const char *path, struct listing *l) {
    DIR *directory = opendir(path);
    if (!directory) return (uint32_t)errno;
    uint32_t error = list_entries(directory, l);
    closedir(directory);
    return error;
}

static uint32_t list_to_stream(const char *path, int out) {
    static uint8_t chunk[COPY_SIZE];
    struct listing l = {.chunk = chunk, .size = sizeof chunk, .out = out};
    uint32_t error = list_directory(path, &l);
    return error || l.used == 0 ? error : flush_listing(&l);
}

static uint32_t list_inline(const char *path, struct worker_report *report, uint8_t *result) {
    struct listing l = {.chunk = result, .size = INLINE_BYTES, .out = -1};
    uint32_t error = list_directory(path, &l);
    report->result_length = error ? 0 : (uint32_t)l.used;
    return error;
}

/* ---- mkdir, remove --------------------------------------------------------------------------------------------- */

static uint32_t make_directory(const char *path, mode_t mode) {
    if (mkdir(path, mode) == 0) return 0;
    return (uint32_t)errno;
}

static uint32_t make_parents(const struct file_request *request, char *path) {
    uint32_t denied = 0; /* which is what some kernels say of a directory that exists, and why another is missing */
    for (char *at = path + 1; (at = strchr(at, '/')); at++) {
        *at = 0;
        uint32_t error = make_directory(path, 0777);
        *at = '/';
        if (error == EROFS || error == EACCES) denied = error;
        else if (error && error != EEXIST && !(denied && error == ENOENT)) return error;
    }
    uint32_t error = make_directory(path, request->mode & 0777);
    if (error == ENOENT && denied) return denied;
    struct stat st;
    if (!error || stat_of(request, path, &st) != 0) return error;
    return S_ISDIR(st.st_mode) ? 0 : S_ISLNK(st.st_mode) ? ELOOP : error;
}

/* The way down to the current directory: on the way up it tells whether somebody has moved one of them meanwhile. */
struct descent {
    struct place {
        dev_t device;
        ino_t inode;
    } *places;
    size_t depth, capacity;
};

static bool remember_here(struct descent *way) {
    struct stat here;
    if (stat(".", &here) != 0) return false;
    if (way->depth == way->capacity) {
        size_t capacity = way->capacity ? way->capacity * 2 : 64;
        struct place *places = realloc(way->places, capacity * sizeof *places);
        if (!places) return false;
        way->places = places;
        way->capacity = capacity;
    }
    way->places[way->depth++] = (struct place){here.st_dev, here.st_ino};
    return true;
}

static uint32_t go_down(struct descent *way, const char *name) {
    if (!remember_here(way)) return (uint32_t)errno;
    int fd = open(name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    uint32_t error = fd >= 0 && fchdir(fd) == 0 ? 0 : (uint32_t)errno;
    if (fd >= 0) close(fd);
    if (error) way->depth--;
    return error;
}

/* Without the check, ".." of a directory that was moved away is a place whose files nobody asked to remove. */
static uint32_t go_up(struct descent *way) {
    struct stat here;
    if (chdir("..") != 0 || stat(".", &here) != 0) return (uint32_t)errno;
    struct place expected = way->places[--way->depth];
    return here.st_dev == expected.device && here.st_ino == expected.inode ? 0 : ESTALE;
}

/* 0 when the entry is gone, ENOTEMPTY when it is a directory that has to be emptied first. */
static uint32_t remove_entry(const char *name) {
    if (unlink(name) == 0 || errno == ENOENT) return 0;
    if (errno != EISDIR && errno != EPERM) return (uint32_t)errno;
    int error = errno;
    if (rmdir(name) == 0 || errno == ENOENT) return 0;
    return (uint32_t)(errno == ENOTDIR ? error : errno);
}

/* Removes what can be removed here and stops in the first directory below that is not empty, with `*below` set. */
static uint32_t empty_entries(const struct file_operation_job *job, struct descent *way, bool *below) {
    DIR *directory = opendir(".");
    if (!directory) return (uint32_t)errno;
    struct dirent *entry;
    uint32_t error = 0;
    *below = false;
    while (!error && !*below && (errno = 0, entry = readdir(directory))) {
        if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0) continue;
        error = *job->cancelled ? ECANCELED : remove_entry(entry->d_name);
        if (error != ENOTEMPTY) continue;
        error = go_down(way, entry->d_name);
        *below = !error;
    }
    closedir(directory);
    return error;
}

/* Empties the current directory, however deep, holding one descriptor at a time: it walks with chdir. */
static uint32_t empty_here(const struct file_operation_job *job) {
    struct descent way = {0};
    uint32_t error;
    bool below = false;
    for (;;) {
        error = empty_entries(job, &way, &below);
        if (error || (!below && way.depth == 0)) break;
        if (!below) error = go_up(&way);
        if (error) break;
    }
    free(way.places);
    return error;
}

static uint32_t remove_path(const struct file_operation_job *job, const char *path, uint8_t flags) {
    struct stat st;
    if (lstat(path, &st) != 0) return errno == ENOENT && (flags & REMOVE_MISSING_IS_FINE) ? 0 : (uint32_t)errno;
    if (!S_ISDIR(st.st_mode)) return unlink(path) == 0 ? 0 : (uint32_t)errno;
    if (rmdir(path) == 0) return 0;
    if (errno != ENOTEMPTY || !(flags & REMOVE_RECURSIVE)) return (uint32_t)errno;
    int start = open(".", O_PATH | O_DIRECTORY | O_CLOEXEC), fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    uint32_t error = start >= 0 && fd >= 0 && fchdir(fd) == 0 ? empty_here(job) : (uint32_t)errno;
    if (!error && unlinkat(start, path, AT_REMOVEDIR) != 0) error = (uint32_t)errno;
    if (chdir("/") != 0 && !error) error = (uint32_t)errno;
    if (start >= 0) close(start);
    if (fd >= 0) close(fd);
    return error;
}

/* ---- rename ---------------------------------------------------------------------------------------------------- */

static uint32_t rename_path(const struct file_request *request, const char *path, char *second) {
    if (!(request->flags & PATH_WITHOUT_LINKS)) return rename(path, second) == 0 ? 0 : (uint32_t)errno;
    int from = open(".", O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (from < 0) return (uint32_t)errno;
    uint32_t error = reach_directory_of(second, false);
    if (!error && renameat(from, path, AT_FDCWD, second) != 0) error = (uint32_t)errno;
    close(from);
    return error;
}

/* ---- dispatch -------------------------------------------------------------------------------------------------- */

static bool path_copy(char *to, const uint8_t *from, uint32_t length) {
    if (length >= PATH_MAX) return false;
    memcpy(to, from, length);
    to[length] = 0;
    return true;
}

static uint32_t operate(const struct file_operation_job *job, const struct file_request *request, char *path, char *second, struct worker_report *report, uint8_t *result) {
    switch (request->operation) {
    case FILE_READ: return read_file(request, path, job->stream, report, result);
    case FILE_WRITE: return write_file(job, request, path);
    case FILE_STAT: return stat_file(request, path, report, result);
    case FILE_LIST: return request->flags & LIST_INLINE ? list_inline(path, report, result) : list_to_stream(path, job->stream);
    case FILE_MKDIR: return request->flags & MKDIR_PARENTS ? make_parents(request, path) : make_directory(path, request->mode & 0777);
    case FILE_RENAME: return rename_path(request, path, second);
    case FILE_REMOVE: return remove_path(job, path, request->flags);
    default: return EINVAL;
    }
}

static uint32_t run_on_path(const struct file_operation_job *job, const struct file_request *request, struct worker_report *report, uint8_t *result) {
    char path[PATH_MAX], second[PATH_MAX];
    bool renames = request->operation == FILE_RENAME, makes = request->operation == FILE_MKDIR && request->flags & MKDIR_PARENTS;
    if (!path_copy(path, request->path, request->path_length)) return ENAMETOOLONG;
    if (renames && !path_copy(second, request->second, request->second_length)) return ENAMETOOLONG;
    if (path[0] != '/' || (renames && second[0] != '/')) return EINVAL;
    if (!(request->flags & PATH_WITHOUT_LINKS)) return operate(job, request, path, second, report, result);
    uint32_t error = reach_directory_of(path, makes);
    if (!error) error = operate(job, request, path, second, report, result);
    if (chdir("/") != 0 && !error) error = (uint32_t)errno;
    return error;
}

/* One after the other, up to the first that fails; the result is how many did not. */
static uint32_t write_sequence(const struct file_operation_job *job, const struct file_request *sequence, struct worker_report *report, uint8_t *result) {
    const uint8_t *at = sequence->second, *end = at + sequence->second_length;
    struct file_request request;
    uint32_t done = 0, error = 0;
    while (!error && at < end) {
        error = sequence_next(&at, end, &request) ? run_on_path(job, &request, report, result) : EINVAL;
        done += !error;
    }
    put32(result, done);
    report->result_length = SEQUENCE_RESULT_BYTES;
    return error;
}

static uint32_t run(const struct file_operation_job *job, const struct file_request *request, struct worker_report *report, uint8_t *result) {
    if (request->operation == FILE_SEQUENCE) return write_sequence(job, request, report, result);
    if (request->operation == FILE_RECEIPT) return receipt_run(job, request, report, result);
    if (request->operation != FILE_REPORT) return run_on_path(job, request, report, result);
    char *paths = strndup((const char *)request->path, request->path_length);
    int failed = paths ? report_write(job->stream, paths) : -1;
    free(paths);
    return failed ? (uint32_t)errno : 0;
}

void file_operation_run(const struct file_operation_job *job, struct worker_report *report, uint8_t *result) {
    struct file_request request;
    report->error = file_parse(job->request, job->size, &request) ? run(job, &request, report, result) : EINVAL;
}
