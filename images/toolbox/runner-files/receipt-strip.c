#define _GNU_SOURCE
#include "receipt-strip.h"

#include <fcntl.h>
#include <stdbool.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "file-protocol.h"

/* A new file may have the number of one that was removed. */
static bool is_same(const struct stat *now, const struct stat *then) {
    bool is_there = now->st_ino == then->st_ino && now->st_dev == then->st_dev && now->st_mode == then->st_mode;
    return is_there && now->st_ctim.tv_sec == then->st_ctim.tv_sec && now->st_ctim.tv_nsec == then->st_ctim.tv_nsec;
}

/* Only root in a container can have made these; the seccomp filter of others refuses it. */
uint16_t receipt_strip(int directory, const char *name, const struct stat *st, uint16_t why) {
    if (why & RECEIPT_DEVICE) return unlinkat(directory, name, 0) == 0 ? RECEIPT_STRIPPED : 0;
    if (!(why & (RECEIPT_SETID | RECEIPT_CAPABILITIES)) || !S_ISREG(st->st_mode)) return 0;
    int fd = openat(directory, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (fd < 0) return 0;
    struct stat now;
    bool done = fstat(fd, &now) == 0 && is_same(&now, st) && fchmod(fd, now.st_mode & 0777) == 0;
    if (done && why & RECEIPT_CAPABILITIES) done = fremovexattr(fd, "security.capability") == 0;
    close(fd);
    return done ? RECEIPT_STRIPPED : 0;
}
