/* openat2 could refuse links by itself, but gVisor, older kernels and the seccomp filters of older engines do not have it. */
#define _GNU_SOURCE
#include "reach.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static uint32_t enter(const char *name, bool makes) {
    static const int flags = O_PATH | O_NOFOLLOW | O_CLOEXEC;
    int fd = open(name, flags);
    if (fd < 0 && errno == ENOENT && makes && (mkdir(name, 0777) == 0 || errno == EEXIST)) fd = open(name, flags);
    if (fd < 0) return (uint32_t)errno;
    struct stat st = {0};
    uint32_t error = fstat(fd, &st) == 0 && fchdir(fd) == 0 ? 0 : (uint32_t)errno;
    close(fd);
    return error == ENOTDIR && S_ISLNK(st.st_mode) ? ELOOP : error;
}

/* Cuts off the first name of the path at `at` and returns it. `*rest` is the path behind it, or NULL if there is none. */
static char *take_name(char *at, char **rest) {
    char *name = at + strspn(at, "/"), *end = name + strcspn(name, "/");
    *rest = end[strspn(end, "/")] ? end + 1 : NULL;
    *end = 0;
    return name;
}

uint32_t reach_directory_of(char *path, bool makes) {
    if (chdir("/") != 0) return (uint32_t)errno;
    char *rest, *name = take_name(path, &rest);
    while (rest) {
        uint32_t error = enter(name, makes);
        if (error) return error;
        name = take_name(rest, &rest);
    }
    size_t length = strlen(name);
    if (length > NAME_MAX) return ENAMETOOLONG;
    memmove(path + 2, name, length + 1);
    memcpy(path, "./", 2);
    return 0;
}
