#include "repository-parts.h"

#include <strings.h>

enum { HEAD = 1, OBJECTS = 2, REFS = 4, COMMON = 8 };

unsigned repository_part(const char *name) {
    if (strcasecmp(name, "HEAD") == 0) return HEAD;
    if (strcasecmp(name, "objects") == 0) return OBJECTS;
    if (strcasecmp(name, "refs") == 0) return REFS;
    return strcasecmp(name, "commondir") == 0 ? COMMON : 0;
}

bool repository_is_whole(unsigned parts) { return parts & HEAD && (parts & COMMON || (parts & OBJECTS && parts & REFS)); }
