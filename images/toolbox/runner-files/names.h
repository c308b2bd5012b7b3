/* The names in one or more directories, each once, in the order of their bytes. */
#ifndef BRIG_NAMES_H
#define BRIG_NAMES_H

#include <stddef.h>
#include <stdint.h>

/*
 * A name that may be a directory is listed twice: as NAME for the directory itself, and as "NAME/" for what is below it. When sorted,
 * "NAME/" comes after NAME-x and before NAME0, so a walk in this order meets all paths of a tree in the order of their bytes.
 */
struct names {
    char **names;
    size_t count, capacity;
    size_t bytes; /* of memory, of all the names */
};

/* Adds the names in an open directory, and closes its descriptor. Returns an errno. */
uint32_t names_add(struct names *list, int directory, size_t limit_bytes);
void names_sort(struct names *list);
void names_free(struct names *list);

#endif
