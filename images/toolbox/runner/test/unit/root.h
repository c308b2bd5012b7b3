/* Files below the temporary directory of a test program. */
#ifndef BRIG_UNIT_ROOT_H
#define BRIG_UNIT_ROOT_H

#include <dirent.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "require.h"

static char root[64];

static const char *in_root(const char *name) {
    static char paths[8][256];
    static unsigned next;
    char *path = paths[next++ % 8];
    snprintf(path, 256, "%s/%s", root, name);
    return path;
}

/* How many entries a directory has, "." and ".." among them. */
static inline size_t count_in(const char *path) {
    DIR *directory = opendir(path);
    size_t count = 0;
    REQUIRE(directory);
    while (readdir(directory)) count++;
    closedir(directory);
    return count;
}

/* Removes all that is in the directory that this descriptor is open on, and closes it. */
static inline void remove_below(int fd) {
    DIR *directory = fdopendir(fd);
    struct dirent *entry;
    REQUIRE(directory);
    while ((entry = readdir(directory))) {
        const char *name = entry->d_name;
        if (strcmp(name, ".") == 0 || strcmp(name, "..") == 0 || unlinkat(fd, name, 0) == 0) continue;
        REQUIRE(fchmodat(fd, name, 0700, 0) == 0);
        int below = openat(fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        REQUIRE(below >= 0);
        remove_below(below);
        REQUIRE(unlinkat(fd, name, AT_REMOVEDIR) == 0);
    }
    closedir(directory);
}

/* Makes the root, or empties it. Starts no program for that, so that a test can do it often. */
static inline void empty_root(void) {
    int fd = open(root, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd >= 0) remove_below(fd);
    else REQUIRE(errno == ENOENT && mkdir(root, 0700) == 0);
    REQUIRE(chmod(root, 0700) == 0);
}

static void put_file(const char *name, const char *text) {
    FILE *file = fopen(in_root(name), "w");
    REQUIRE(file && fputs(text, file) >= 0 && fclose(file) == 0);
}

static inline void require_file(const char *name, const char *text) {
    char content[64] = "";
    FILE *file = fopen(in_root(name), "r");
    REQUIRE(file && fread(content, 1, sizeof content - 1, file) == strlen(text) && fclose(file) == 0 && strcmp(content, text) == 0);
}

#endif
