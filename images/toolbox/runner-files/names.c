#define _GNU_SOURCE
#include "names.h"

#include <dirent.h>
#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static bool append(struct names *list, const char *name, bool is_below) {
    if (list->count == list->capacity) {
        size_t capacity = list->capacity ? list->capacity * 2 : 32;
        char **names = realloc(list->names, capacity * sizeof *names);
        if (!names) return false;
        list->names = names;
        list->capacity = capacity;
    }
    size_t length = strlen(name);
    char *copy = malloc(length + 2);
    if (!copy) return false;
    memcpy(copy, name, length);
    if (is_below) copy[length++] = '/';
    copy[length] = 0;
    list->names[list->count++] = copy;
    list->bytes += length + 1 + sizeof copy + 16;
    return true;
}

static bool append_entry(struct names *list, const struct dirent *entry) {
    bool may_be_directory = entry->d_type == DT_DIR || entry->d_type == DT_UNKNOWN;
    return append(list, entry->d_name, false) && (!may_be_directory || append(list, entry->d_name, true));
}

uint32_t names_add(struct names *list, int fd, size_t limit_bytes) {
    DIR *directory = fdopendir(fd);
    if (!directory) {
        uint32_t failed = (uint32_t)errno;
        close(fd);
        return failed;
    }
    uint32_t error = 0;
    struct dirent *entry;
    while (!error && (errno = 0, entry = readdir(directory))) {
        if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0) continue;
        if (list->bytes > limit_bytes || !append_entry(list, entry)) error = ENOMEM;
    }
    if (!error) error = (uint32_t)errno;
    closedir(directory);
    return error;
}

static int compare(const void *a, const void *b) { return strcmp(*(char *const *)a, *(char *const *)b); }

void names_sort(struct names *list) {
    if (list->count == 0) return;
    qsort(list->names, list->count, sizeof *list->names, compare);
    size_t kept = 1;
    for (size_t i = 1; i < list->count; i++) {
        if (strcmp(list->names[i], list->names[kept - 1]) == 0) free(list->names[i]);
        else list->names[kept++] = list->names[i];
    }
    list->count = kept;
}

void names_free(struct names *list) {
    for (size_t i = 0; i < list->count; i++) free(list->names[i]);
    free(list->names);
    *list = (struct names){0};
}
