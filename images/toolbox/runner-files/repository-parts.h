/* The names that make git take a directory for a repository, whatever the directory is called. */
#ifndef BRIG_REPOSITORY_PARTS_H
#define BRIG_REPOSITORY_PARTS_H

#include <stdbool.h>

/* The part of a repository that has this name, as a bit, or 0. */
unsigned repository_part(const char *name);

/* Whether these parts are enough. The objects and refs may be in another directory, which `commondir` names. */
bool repository_is_whole(unsigned parts);

#endif
