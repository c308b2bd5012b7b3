/* Writes down every file below the root of a test (name, mode, owner, time, content), so that two moments can be compared. */
#ifndef BRIG_UNIT_PICTURE_H
#define BRIG_UNIT_PICTURE_H

#include <dirent.h>
#include <stdbool.h>

#include "../../../runner-files/file-stat.h"
#include "root.h"

#define PICTURE_MAX 8192

static char picture[PICTURE_MAX];
static size_t picture_size;

static void draw(const char *path, bool with_numbers) {
    struct stat st;
    char text[64] = "";
    REQUIRE(lstat(in_root(path), &st) == 0);
    if (S_ISLNK(st.st_mode)) REQUIRE(readlink(in_root(path), text, sizeof text - 1) > 0);
    if (S_ISREG(st.st_mode)) {
        int fd = open(in_root(path), O_RDONLY | O_CLOEXEC);
        REQUIRE(fd >= 0 && read(fd, text, sizeof text - 1) >= 0 && close(fd) == 0);
    }
    long long time = S_ISDIR(st.st_mode) ? 0 : (long long)file_time(st.st_mtim);
    unsigned long long number = with_numbers ? st.st_ino : 0;
    picture_size += (size_t)snprintf(picture + picture_size, PICTURE_MAX - picture_size, "%s %o %u %u %lld %llu %s\n", path, st.st_mode, st.st_uid, st.st_gid, time, number, text);
    REQUIRE(picture_size < PICTURE_MAX);
}

static void draw_below(const char *path, bool with_numbers) {
    struct dirent **list;
    int count = scandir(in_root(path), &list, NULL, alphasort);
    REQUIRE(count >= 0);
    for (int i = 0; i < count; i++) {
        char below[512];
        const char *name = list[i]->d_name;
        snprintf(below, sizeof below, "%s%s%s", path, *path ? "/" : "", name);
        if (strcmp(name, ".") != 0 && strcmp(name, "..") != 0 && strncmp(name, ".brig-stage-", 12) != 0) {
            struct stat st;
            draw(below, with_numbers);
            if (lstat(in_root(below), &st) == 0 && S_ISDIR(st.st_mode)) draw_below(below, with_numbers);
        }
        free(list[i]);
    }
    free(list);
}

/* Leaves out the stage of a commit. `with_numbers`: with inode numbers, which a file keeps only if it is not made anew. */
static void take_picture(char *to, bool with_numbers) {
    picture_size = 0;
    picture[0] = 0;
    draw_below("", with_numbers);
    memcpy(to, picture, PICTURE_MAX);
}

static bool is_now(const char *expected, bool with_numbers) {
    static char now[PICTURE_MAX];
    take_picture(now, with_numbers);
    return strcmp(now, expected) == 0;
}

#endif
