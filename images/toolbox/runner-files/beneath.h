/* Opens directories below a given one, without following symbolic links or entering another mount. */
#ifndef BRIG_BENEATH_H
#define BRIG_BENEATH_H

#include <stdbool.h>
#include <stddef.h>

/*
 * Opens the directory at `path` below `root`; an empty path is `root` itself. Returns -1 with errno ELOOP or ENOTDIR if a name in the
 * path is a symbolic link, and EXDEV if something is mounted on the way. `flags` is O_PATH or O_RDONLY.
 */
int open_beneath(int root, const char *path, int flags);

/* Whether `path` leads from a directory to something below it: no empty name, no "." and no "..", and short enough for the kernel. */
bool is_path_below(const char *path, size_t length);

#endif
