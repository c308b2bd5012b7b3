#define _GNU_SOURCE
#include "beneath.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdint.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#ifndef SYS_openat2
#define SYS_openat2 437
#endif

/* From <linux/openat2.h>, which musl does not have. */
struct open_how {
    uint64_t flags, mode, resolve;
};
enum { NO_XDEV = 1, NO_MAGICLINKS = 2, NO_SYMLINKS = 4, BENEATH = 8 };

/* The layout of struct statx. `mount` is valid only if `mask` contains WANTS_MOUNT_ID, which kernels before 5.8 do not set. */
struct mount_statx {
    uint32_t mask, others[35];
    uint64_t mount;
    uint8_t rest[104];
};
#define WANTS_MOUNT_ID 0x1000u

/* The device alone does not tell mounts apart: a bind mount has the device of its source. */
struct mount {
    dev_t device;
    uint64_t id;
};

static bool mount_of(int fd, struct mount *mount) {
    struct stat st;
    struct mount_statx more = {0};
    if (fstat(fd, &st) != 0) return false;
    *mount = (struct mount){.device = st.st_dev};
    if (syscall(SYS_statx, fd, "", AT_EMPTY_PATH, WANTS_MOUNT_ID, &more) == 0 && more.mask & WANTS_MOUNT_ID) mount->id = more.mount;
    return true;
}

static bool has_left_mount(int fd, const struct mount *mount) {
    struct mount here;
    return !mount_of(fd, &here) || here.device != mount->device || here.id != mount->id;
}

/* Opens one name after the other, where openat2 is missing: in gVisor, in old kernels and behind the seccomp filters of old engines. */
static int walk_beneath(int root, const char *path, int flags) {
    struct mount mount;
    int at = openat(root, ".", O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (at >= 0 && !mount_of(at, &mount)) {
        close(at);
        at = -1;
    }
    while (at >= 0 && *path) {
        char name[NAME_MAX + 1];
        size_t length = strcspn(path, "/");
        int before = at;
        at = -1;
        errno = ENAMETOOLONG;
        if (length <= NAME_MAX) {
            memcpy(name, path, length);
            name[length] = 0;
            path += length + (path[length] == '/');
            at = openat(before, name, (*path ? O_PATH : flags) | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        }
        int error = errno;
        close(before);
        if (at >= 0 && has_left_mount(at, &mount)) {
            close(at);
            at = -1;
            error = EXDEV;
        }
        errno = error;
    }
    return at;
}

int open_beneath(int root, const char *path, int flags) {
    if (!*path) return openat(root, ".", flags | O_DIRECTORY | O_CLOEXEC);
    struct open_how how = {.flags = (uint64_t)(flags | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)};
    how.resolve = BENEATH | NO_SYMLINKS | NO_MAGICLINKS | NO_XDEV;
    int fd = (int)syscall(SYS_openat2, root, path, &how, sizeof how);
    return fd < 0 && (errno == ENOSYS || errno == EPERM) ? walk_beneath(root, path, flags) : fd;
}

static bool is_name(const char *name, size_t length) {
    if (length == 0 || length > NAME_MAX) return false;
    return !(name[0] == '.' && (length == 1 || (length == 2 && name[1] == '.')));
}

bool is_path_below(const char *path, size_t length) {
    if (length >= PATH_MAX || memchr(path, 0, length)) return false;
    const char *end = path + length;
    for (;;) {
        const char *slash = memchr(path, '/', (size_t)(end - path));
        if (!is_name(path, (size_t)((slash ? slash : end) - path))) return false;
        if (!slash) return true;
        path = slash + 1;
    }
}
