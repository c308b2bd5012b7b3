#define _GNU_SOURCE
#include "file-read.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <unistd.h>

#include "file-stat.h"
#include "io.h"
#include "wire.h"

#define COPY_BYTES (64u << 10)

static uint32_t open_regular(const struct file_request *request, const char *path, int *fd, struct stat *st) {
    if (file_stat(request, path, st) != 0) return (uint32_t)errno;
    uint32_t irregular = file_refuse_irregular(st->st_mode);
    if (irregular) return irregular;
    int no_follow = request->flags & PATH_WITHOUT_LINKS ? O_NOFOLLOW : 0;
    *fd = open(path, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC | no_follow);
    if (*fd < 0) return (uint32_t)errno;
    /* Since the first look the name may have been given to another file. */
    irregular = fstat(*fd, st) == 0 ? file_refuse_irregular(st->st_mode) : (uint32_t)errno;
    if (irregular) close(*fd);
    return irregular;
}

static uint32_t copy_range(int fd, int out, uint64_t offset, uint64_t length) {
    static uint8_t chunk[COPY_BYTES];
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

static uint32_t read_inline(int fd, uint64_t offset, uint64_t length, struct file_result *result) {
    while (length > 0) {
        ssize_t n = pread(fd, result->bytes + result->length, (size_t)length, (off_t)offset);
        if (n < 0 && errno == EINTR) continue;
        if (n < 0) return (uint32_t)errno;
        if (n == 0) return 0;
        result->length += (uint32_t)n;
        offset += (uint64_t)n;
        length -= (uint64_t)n;
    }
    return 0;
}

/* The offset of the first data at or behind `offset`. On a file system that does not know its holes that is `offset` itself. */
static uint64_t skip_hole(int fd, uint64_t offset, uint64_t size) {
    if (offset >= size) return offset;
    off_t data = lseek(fd, (off_t)offset, SEEK_DATA);
    if (data < 0) return errno == ENXIO ? size : offset;
    return (uint64_t)data > offset ? (uint64_t)data : offset;
}

/* The offset of the hole behind the data at `offset`. */
static uint64_t end_of_data(int fd, uint64_t offset, uint64_t end) {
    off_t hole = lseek(fd, (off_t)offset, SEEK_HOLE);
    return hole > (off_t)offset && (uint64_t)hole < end ? (uint64_t)hole : end;
}

static uint32_t write_extent(int out, uint8_t *extent, uint64_t offset, size_t length) {
    put64(extent, offset);
    put32(extent + 8, (uint32_t)length);
    return write_all(out, extent, EXTENT_HEAD_BYTES + length) == 0 ? 0 : (uint32_t)errno;
}

/* The end is fixed before, so that a file that grows meanwhile is not read for ever. A file that shrinks ends where it is found to end. */
static uint32_t read_extents(int fd, int out, uint64_t offset, uint64_t end) {
    static uint8_t extent[EXTENT_HEAD_BYTES + EXTENT_BYTES_MAX];
    uint64_t data_end = offset;
    while (offset < end) {
        if (offset == data_end) {
            offset = skip_hole(fd, offset, end);
            if (offset >= end) break;
            data_end = end_of_data(fd, offset, end);
        }
        uint64_t left = data_end - offset;
        ssize_t n = pread(fd, extent + EXTENT_HEAD_BYTES, left < EXTENT_BYTES_MAX ? (size_t)left : EXTENT_BYTES_MAX, (off_t)offset);
        if (n < 0 && errno == EINTR) continue;
        if (n < 0) return (uint32_t)errno;
        if (n == 0) end = offset;
        uint32_t error = n == 0 ? 0 : write_extent(out, extent, offset, (size_t)n);
        if (error) return error;
        offset += (uint64_t)n;
    }
    return write_extent(out, extent, end, 0);
}

/* The end of the requested part. A length of zero means everything. */
static uint64_t end_of_request(const struct file_request *request, uint64_t size) {
    bool is_shorter = request->length > 0 && request->offset < size && size - request->offset > request->length;
    return is_shorter ? request->offset + request->length : size;
}

static bool is_longer_than_asked(const struct file_request *request, uint64_t size) {
    return size > request->offset && size - request->offset > request->length;
}

static uint32_t read_open_file(const struct file_request *request, int fd, int out, struct file_result *result) {
    uint64_t size = get64(result->bytes), start = request->offset;
    /* The file is refused before anything is read, because it could be a sparse file of a terabyte. */
    if ((request->flags & READ_ALL_OR_NONE) && is_longer_than_asked(request, size)) return EFBIG;
    if (start > INT64_MAX) return EINVAL;
    if (request->flags & READ_SKIP_HOLE) start = skip_hole(fd, start, size);
    put64(result->bytes + 8, start);
    if (request->flags & READ_EXTENTS) return read_extents(fd, out, start, end_of_request(request, size));
    return request->flags & READ_INLINE ? read_inline(fd, start, request->length, result) : copy_range(fd, out, start, request->length);
}

uint32_t file_read(const struct file_request *request, const char *path, int out, struct file_result *result) {
    struct stat st = {0};
    int fd = -1;
    uint32_t error = open_regular(request, path, &fd, &st);
    put64(result->bytes, error ? 0 : (uint64_t)st.st_size);
    put64(result->bytes + 8, request->offset);
    result->length = READ_RESULT_BYTES;
    if (error) return error;
    error = read_open_file(request, fd, out, result);
    close(fd);
    return error;
}
