#define _GNU_SOURCE
#include "copy-content.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

/* After each piece, a copy checks whether it was cancelled. */
#define PIECE_BYTES (8u << 20)
#define BUFFER_BYTES (128u << 10)

/* A system call, because only recent versions of musl have this function. */
static ssize_t copy_range(int from, int to, off_t at, size_t size) {
    int64_t in = at, out = at;
    return (ssize_t)syscall(SYS_copy_file_range, from, &in, to, &out, size, 0u);
}

static ssize_t copy_by_hand(int from, int to, off_t at, size_t size) {
    static uint8_t buffer[BUFFER_BYTES];
    ssize_t n = pread(from, buffer, size < sizeof buffer ? size : sizeof buffer, at);
    for (ssize_t done = 0, m; done < n; done += m) {
        m = pwrite(to, buffer + done, (size_t)(n - done), at + done);
        if (m < 0 && errno != EINTR) return -1;
        if (m < 0) m = 0;
    }
    return n;
}

/* Copies at least one byte, unless the file ends here. */
static ssize_t copy_some(int from, int to, off_t at, size_t size) {
    ssize_t n;
    do n = copy_range(from, to, at, size);
    while (n < 0 && errno == EINTR);
    if (n > 0 || (n < 0 && (errno == EIO || errno == ENOSPC || errno == EDQUOT))) return n;
    do n = copy_by_hand(from, to, at, size);
    while (n < 0 && errno == EINTR);
    return n;
}

/* These return the offset of the next data, or hole, from `at` on. On a file system that does not report holes, all is data. */
static off_t seek_data(int fd, off_t at, off_t end) {
    off_t data = lseek(fd, at, SEEK_DATA);
    return data >= at ? data : errno == ENXIO ? end : at;
}

static off_t seek_hole(int fd, off_t at, off_t end) {
    off_t hole = lseek(fd, at, SEEK_HOLE);
    return hole > at && hole < end ? hole : end;
}

uint32_t copy_content(const struct file_job *job, int from, int to, uint64_t size, uint64_t *bytes_left) {
    struct stat st;
    if (fstat(from, &st) != 0) return (uint32_t)errno;
    /* The end is fixed here, so that a file that grows meanwhile is not copied for ever. */
    off_t end = (uint64_t)st.st_size < size ? st.st_size : (off_t)size;
    off_t at = end > 0 ? seek_data(from, 0, end) : 0, written = 0;
    while (at < end) {
        off_t data_end = seek_hole(from, at, end);
        while (at < data_end) {
            size_t piece = data_end - at < PIECE_BYTES ? (size_t)(data_end - at) : PIECE_BYTES;
            if (*job->cancelled) return ECANCELED;
            if (piece > *bytes_left) return EFBIG;
            ssize_t n = copy_some(from, to, at, piece);
            if (n < 0) return (uint32_t)errno;
            /* The file was truncated meanwhile. */
            if (n == 0) data_end = end = at;
            *bytes_left -= (uint64_t)n;
            at += n;
        }
        written = at;
        if (at < end) at = seek_data(from, at, end);
    }
    /* A hole at the end. */
    return written == end || ftruncate(to, end) == 0 ? 0 : (uint32_t)errno;
}
