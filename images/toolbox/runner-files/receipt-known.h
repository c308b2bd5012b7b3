/*
 * The directories with notable names that existed when the session began. A directory of such a name that is not among them was made,
 * renamed or moved since then.
 */
#ifndef BRIG_RECEIPT_KNOWN_H
#define BRIG_RECEIPT_KNOWN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct known_directory;

struct known_directories {
    struct known_directory *all; /* in the order of the bytes of their paths */
    size_t count;
};

/* Each line is an inode number in decimal, a space and a path. The lines have to stay until known_free. False when there is no memory. */
bool known_read(struct known_directories *known, const char *lines);
bool known_has(const struct known_directories *known, const char *path, size_t length, uint64_t ino);
void known_free(struct known_directories *known);

#endif
