#define _GNU_SOURCE
#include "files.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { READ_SIZE = 64 * 1024, MAX_LINKS = 40 };

int read_descriptor(int fd, size_t most, struct text *content) {
    char *bytes = allocate(READ_SIZE, 1);
    size_t used = 0, room = READ_SIZE;
    for (;;) {
        ssize_t n = read(fd, bytes + used, room - used);
        if (n < 0 && errno == EINTR) continue;
        if (n < 0) return errno;
        if (n == 0) break;
        used += (size_t)n;
        if (used > most) return TOO_LARGE;
        if (used < room) continue;
        char *grown = realloc(bytes, room *= 2);
        if (!grown) return ENOMEM;
        bytes = grown;
    }
    *content = (struct text){bytes, used};
    return 0;
}

int read_file(const char *path, struct text *content, struct stat *st) {
    int fd = open(path, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC), failure = 0;
    if (fd < 0) return errno == ENXIO ? NOT_A_FILE : errno; /* ENXIO: a socket */
    if (fstat(fd, st) != 0) failure = errno;
    else if (!S_ISREG(st->st_mode)) failure = NOT_A_FILE;
    else failure = read_descriptor(fd, MAX_FILE_BYTES, content);
    close(fd);
    return failure;
}

/* Follows a link, link after link. The last one may lead to nothing. */
static int follow_links(char path[PATH_MAX]) {
    for (int links = 0; links < MAX_LINKS; links++) {
        char target[PATH_MAX];
        ssize_t length = readlink(path, target, sizeof target - 1);
        if (length < 0) return errno == EINVAL || errno == ENOENT ? 0 : errno;
        target[length] = 0;
        char *name = *target == '/' ? path : strrchr(path, '/') + 1;
        if ((size_t)(name - path) + (size_t)length >= PATH_MAX) return ENAMETOOLONG;
        memcpy(name, target, (size_t)length + 1);
    }
    return ELOOP;
}

static int write_all(int fd, struct text content) {
    while (content.length) {
        ssize_t n = write(fd, content.at, content.length);
        if (n < 0 && errno != EINTR) return errno;
        if (n > 0) content = without_start(content, (size_t)n);
    }
    return 0;
}

static int replace_there(const char *path, struct text content, mode_t mode) {
    struct stat st;
    bool exists = stat(path, &st) == 0;
    if (!exists && errno != ENOENT) return errno;
    if (exists && !S_ISREG(st.st_mode)) return NOT_A_FILE;
    /* A rename would replace even a file its user has made read-only; a plain write would not, so neither does this. */
    if (exists && access(path, W_OK) != 0) return errno;
    char name[PATH_MAX];
    int directory = (int)(strrchr(path, '/') + 1 - path);
    if (snprintf(name, sizeof name, "%.*s.brig-XXXXXX", directory, path) >= (int)sizeof name) return ENAMETOOLONG;
    int fd = mkostemp(name, O_CLOEXEC);
    if (fd < 0) return errno;
    int failure = write_all(fd, content);
    if (!failure && fchmod(fd, exists ? st.st_mode & 0777 : mode) != 0) failure = errno;
    if (close(fd) != 0 && !failure) failure = errno;
    if (!failure && rename(name, path) != 0) failure = errno;
    if (failure) unlink(name);
    return failure;
}

int replace_file(const char *path, struct text content, mode_t mode) {
    char place[PATH_MAX];
    if (strlen(path) >= sizeof place) return ENAMETOOLONG;
    strcpy(place, path);
    int failure = follow_links(place);
    return failure ? failure : replace_there(place, content, mode);
}

int make_directories(const char *path) {
    char *place = string_of(text_of(path));
    int denied = 0; /* some kernels report this for a directory that exists; it is also the reason why another is missing */
    for (char *at = place + 1; (at = strchr(at, '/')); at++) {
        *at = 0;
        int failure = mkdir(place, 0777) == 0 ? 0 : errno;
        *at = '/';
        if (failure == EROFS || failure == EACCES) denied = failure;
        else if (failure && failure != EEXIST && !(denied && failure == ENOENT)) return failure;
    }
    int failure = mkdir(place, 0777) == 0 ? 0 : errno;
    if (failure == ENOENT && denied) return denied;
    struct stat st;
    return !failure || (stat(place, &st) == 0 && S_ISDIR(st.st_mode)) ? 0 : failure;
}

struct text failure_text(const char *path, int failure) {
    if (failure == NOT_A_FILE) return CONCAT(TEXT("path `"), text_of(path), TEXT("` is not a file"));
    if (failure == TOO_LARGE) return CONCAT(TEXT("file is larger than "), text_of_number(MAX_FILE_BYTES), TEXT(" bytes"));
    return CONCAT(text_of(strerror(failure)), TEXT(" (os error "), text_of_number((size_t)failure), TEXT(")"));
}
