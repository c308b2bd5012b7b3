#include "receipt-known.h"

#include <stdlib.h>
#include <string.h>

struct known_directory {
    const char *path;
    size_t length;
    uint64_t ino;
};

static int compare(const void *a, const void *b) {
    const struct known_directory *one = a, *other = b;
    int order = memcmp(one->path, other->path, one->length < other->length ? one->length : other->length);
    return order ? order : (one->length > other->length) - (one->length < other->length);
}

bool known_has(const struct known_directories *known, const char *path, size_t length, uint64_t ino) {
    const struct known_directory wanted = {.path = path, .length = length};
    if (known->count == 0) return false;
    const struct known_directory *found = bsearch(&wanted, known->all, known->count, sizeof wanted, compare);
    return found && found->ino == ino;
}

bool known_read(struct known_directories *known, const char *lines) {
    size_t most = 1;
    for (const char *at = lines; *at; at++) most += *at == '\n';
    *known = (struct known_directories){.all = calloc(most, sizeof *known->all)};
    if (!known->all) return false;
    for (const char *at = lines; *at;) {
        size_t length = strcspn(at, "\n");
        char *path;
        uint64_t ino = strtoull(at, &path, 10);
        if (*path == ' ' && path < at + length)
            known->all[known->count++] = (struct known_directory){.path = path + 1, .length = (size_t)(at + length - path - 1), .ino = ino};
        at += length + (at[length] == '\n');
    }
    qsort(known->all, known->count, sizeof *known->all, compare);
    return true;
}

void known_free(struct known_directories *known) {
    free(known->all);
    *known = (struct known_directories){0};
}
