/* Looks at one name in the three directories of an overlay: the merged tree, the base below it, and the upper one with the changes. */
#ifndef BRIG_SIGHT_H
#define BRIG_SIGHT_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/stat.h>

enum side { MERGED, BASE, UPPER, SIDES };

struct sight {
    bool has[SIDES];
    struct stat st[SIDES];
};

/* Looks at `name` in each directory; -1 stands for a directory that does not exist. Returns an errno. */
uint32_t sight_take(const int directories[SIDES], const char *name, struct sight *sight);
bool sight_is_directory(const struct sight *sight, enum side side);

/*
 * Whether the merged tree shows the base's own file or directory at the name, not a changed copy of it. In doubt the answer is no, which
 * only costs a comparison. `devices` are the devices of the three roots.
 */
bool sight_is_base_object(const struct sight *sight, const dev_t devices[SIDES]);

#endif
