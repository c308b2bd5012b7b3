/* By what git takes a directory for a repository, whatever it is called. */
#ifndef BRIG_REPOSITORY_PARTS_H
#define BRIG_REPOSITORY_PARTS_H

#include <stdbool.h>

/* Which part of a repository something of this name is, as a bit, or 0. */
unsigned repository_part(const char *name);

/* Whether these parts are enough. The objects and refs may be in another directory, which `commondir` names. */
bool repository_is_whole(unsigned parts);

#endif
