#define _GNU_SOURCE
#include "sight.h"

#include <errno.h>
#include <fcntl.h>

/* With xino=on, overlay puts the number of the layer into the highest bits of an inode number. */
#define INODE_BITS 56

static bool has_disappeared(int error) {
    return error == ENOENT || error == ENOTDIR || error == ESTALE || error == EACCES || error == ELOOP;
}

uint32_t sight_take(const int directories[SIDES], const char *name, struct sight *sight) {
    for (int side = 0; side < SIDES; side++) {
        int directory = directories[side];
        sight->has[side] = directory >= 0 && fstatat(directory, name, &sight->st[side], AT_SYMLINK_NOFOLLOW) == 0;
        if (directory >= 0 && !sight->has[side] && !has_disappeared(errno)) return (uint32_t)errno;
    }
    return 0;
}

bool sight_is_directory(const struct sight *sight, enum side side) { return sight->has[side] && S_ISDIR(sight->st[side].st_mode); }

static bool have_same_number(uint64_t one, uint64_t other) { return (one ^ other) << (64 - INODE_BITS) == 0; }

bool sight_is_base_object(const struct sight *sight, const dev_t devices[SIDES]) {
    const struct stat *now = &sight->st[MERGED], *before = &sight->st[BASE];
    if (!sight->has[MERGED] || !sight->has[BASE] || before->st_dev != devices[BASE]) return false;
    if ((now->st_mode & S_IFMT) != (before->st_mode & S_IFMT)) return false;
    if (devices[BASE] == devices[UPPER]) return now->st_ino == before->st_ino;
    /* If its highest bits contain no layer's number, overlay made the inode number up, and another file may have it too. */
    if (now->st_ino >> INODE_BITS == 0 || before->st_ino >> INODE_BITS != 0 || !have_same_number(now->st_ino, before->st_ino)) return false;
    return !sight->has[UPPER] || !have_same_number(now->st_ino, sight->st[UPPER].st_ino);
}
