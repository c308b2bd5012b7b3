#define _GNU_SOURCE
#include "same-content.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define COMPARE_BYTES (128u << 10)

bool is_failure(int error) { return error == EMFILE || error == ENFILE || error == ENOMEM || error == EIO; }

/* ---- targets of links -------------------------------------------------------------------------------------------- */

uint32_t read_target(struct named_file link, char target[PATH_MAX], size_t *length) {
    ssize_t n = readlinkat(link.directory, link.name, target, PATH_MAX);
    *length = n < 0 ? 0 : (size_t)n;
    return n < 0 && is_failure(errno) ? (uint32_t)errno : 0;
}

uint32_t compare_targets(struct named_file one, struct named_file other, bool *is_same) {
    static char of_one[PATH_MAX], of_other[PATH_MAX];
    size_t n, m;
    *is_same = false;
    uint32_t error = read_target(one, of_one, &n);
    if (!error) error = read_target(other, of_other, &m);
    if (!error) *is_same = n > 0 && n == m && memcmp(of_one, of_other, n) == 0;
    return error;
}

/* ---- contents of files ------------------------------------------------------------------------------------------- */

struct open_file {
    int fd;
    struct stat st;
};

/* O_NONBLOCK is there because opening a FIFO that has replaced the file meanwhile would block. */
static bool open_to_compare(struct named_file file, struct open_file *opened) {
    opened->fd = openat(file.directory, file.name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
    return opened->fd >= 0 && fstat(opened->fd, &opened->st) == 0;
}

static off_t next_data(const struct open_file *file, off_t at) {
    off_t data = lseek(file->fd, at, SEEK_DATA);
    if (data < 0) return errno == ENXIO ? file->st.st_size : at;
    return data;
}

static ssize_t read_at(const struct open_file *file, uint8_t *to, size_t size, off_t at) {
    ssize_t n;
    do n = pread(file->fd, to, size, at);
    while (n < 0 && errno == EINTR);
    return n;
}

static bool is_unchanged(const struct open_file *file) {
    const struct stat *then = &file->st;
    struct stat now;
    if (fstat(file->fd, &now) != 0 || now.st_size != then->st_size) return false;
    return now.st_ctim.tv_sec == then->st_ctim.tv_sec && now.st_ctim.tv_nsec == then->st_ctim.tv_nsec;
}

static uint32_t compare_open(const struct file_job *job, const struct open_file *a, const struct open_file *b, bool *is_same) {
    static uint8_t of_a[COMPARE_BYTES], of_b[COMPARE_BYTES];
    off_t at = 0, size = a->st.st_size;
    for (;;) {
        if (*job->cancelled) return ECANCELED;
        off_t in_a = next_data(a, at), in_b = next_data(b, at);
        at = in_a < in_b ? in_a : in_b;
        if (at >= size) break;
        size_t piece = size - at < COMPARE_BYTES ? (size_t)(size - at) : COMPARE_BYTES;
        ssize_t n = read_at(a, of_a, piece, at), m = n > 0 ? read_at(b, of_b, (size_t)n, at) : 0;
        if (n < 0 || m < 0) return (uint32_t)errno;
        if (n == 0 || m != n || memcmp(of_a, of_b, (size_t)n) != 0) return 0;
        at += n;
    }
    *is_same = is_unchanged(a) && is_unchanged(b);
    return 0;
}

uint32_t compare_content(const struct file_job *job, struct named_file one, struct named_file other, bool *is_same) {
    struct open_file a = {.fd = -1}, b = {.fd = -1};
    *is_same = false;
    uint32_t error = 0;
    bool are_open = open_to_compare(one, &a) && open_to_compare(other, &b);
    if (!are_open && is_failure(errno)) error = (uint32_t)errno;
    if (are_open && S_ISREG(a.st.st_mode) && S_ISREG(b.st.st_mode) && a.st.st_size == b.st.st_size)
        error = compare_open(job, &a, &b, is_same);
    if (a.fd >= 0) close(a.fd);
    if (b.fd >= 0) close(b.fd);
    return error;
}
