#define _GNU_SOURCE
#include "file-list.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>

#include "file-stat.h"
#include "io.h"
#include "wire.h"

#define CHUNK_BYTES (64u << 10)

static uint8_t entry_type(DIR *directory, const struct dirent *entry) {
    if (entry->d_type != DT_UNKNOWN) return file_type((mode_t)DTTOIF(entry->d_type));
    struct stat st;
    return fstatat(dirfd(directory), entry->d_name, &st, AT_SYMLINK_NOFOLLOW) == 0 ? file_type(st.st_mode) : ENTRY_UNKNOWN;
}

/* Gathers entries in `chunk`. When that is full it is written to `out`; without an `out` that is an error. */
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

uint32_t file_list_to_stream(const char *path, int out) {
    static uint8_t chunk[CHUNK_BYTES];
    struct listing l = {.chunk = chunk, .size = sizeof chunk, .out = out};
    uint32_t error = list_directory(path, &l);
    return error || l.used == 0 ? error : flush_listing(&l);
}

uint32_t file_list_inline(const char *path, struct file_result *result) {
    struct listing l = {.chunk = result->bytes, .size = INLINE_BYTES, .out = -1};
    uint32_t error = list_directory(path, &l);
    result->length = error ? 0 : (uint32_t)l.used;
    return error;
}
