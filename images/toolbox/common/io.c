#include "io.h"

#include <errno.h>
#include <stdint.h>
#include <unistd.h>

int write_all(int fd, const void *data, size_t size) {
    const uint8_t *at = data;
    while (size > 0) {
        ssize_t n = write(fd, at, size);
        if (n < 0 && errno == EINTR) continue;
        if (n < 0) return -1;
        at += n;
        size -= (size_t)n;
    }
    return 0;
}

bool read_text(int fd, char *text, size_t size) {
    ssize_t n = fd < 0 ? -1 : pread(fd, text, size - 1, 0);
    text[n > 0 ? n : 0] = 0;
    return n > 0;
}
