#define _GNU_SOURCE
#include "file-stat.h"

#include <errno.h>
#include <limits.h>
#include <string.h>
#include <unistd.h>

uint8_t file_type(mode_t mode) {
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

int64_t file_time(struct timespec time) {
    int64_t seconds, all;
    if (!__builtin_mul_overflow((int64_t)time.tv_sec, INT64_C(1000000000), &seconds) && !__builtin_add_overflow(seconds, (int64_t)time.tv_nsec, &all))
        return all;
    return time.tv_sec < 0 ? INT64_MIN : INT64_MAX;
}

struct timespec file_timespec(int64_t ns) {
    if (ns == INT64_MIN) return (struct timespec){.tv_nsec = UTIME_OMIT};
    int64_t seconds = ns / 1000000000, rest = ns % 1000000000;
    return rest < 0 ? (struct timespec){seconds - 1, (long)(rest + 1000000000)} : (struct timespec){seconds, (long)rest};
}

int file_stat(const struct file_request *request, const char *path, struct stat *st) {
    return request->flags & PATH_WITHOUT_LINKS ? lstat(path, st) : stat(path, st);
}

uint32_t file_refuse_irregular(mode_t mode) {
    if (S_ISREG(mode)) return 0;
    if (S_ISLNK(mode)) return ELOOP;
    return S_ISDIR(mode) ? EISDIR : NOT_REGULAR + file_type(mode);
}

uint32_t file_describe(const struct file_request *request, const char *path, struct file_result *result) {
    uint8_t *record = result->bytes;
    struct stat st;
    bool is_of_link = request->flags & STAT_LINK_ITSELF;
    if ((is_of_link ? lstat(path, &st) : file_stat(request, path, &st)) != 0) return (uint32_t)errno;
    if (S_ISLNK(st.st_mode) && !is_of_link) return ELOOP;
    memset(record, 0, STAT_RECORD_BYTES);
    record[0] = file_type(st.st_mode);
    put32(record + 4, st.st_mode & 07777);
    put32(record + 8, st.st_uid);
    put32(record + 12, st.st_gid);
    put64(record + 16, (uint64_t)st.st_size);
    put64(record + 24, (uint64_t)st.st_mtim.tv_sec * 1000000000u + (uint64_t)st.st_mtim.tv_nsec);
    put64(record + 32, (uint64_t)st.st_dev);
    put64(record + 40, (uint64_t)st.st_ino);
    ssize_t n = S_ISLNK(st.st_mode) ? readlink(path, (char *)record + STAT_RECORD_BYTES, PATH_MAX) : 0;
    put32(record + 48, n > 0 ? (uint32_t)n : 0);
    result->length = STAT_RECORD_BYTES + (n > 0 ? (uint32_t)n : 0);
    return 0;
}
