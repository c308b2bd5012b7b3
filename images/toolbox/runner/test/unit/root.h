/* Files below the temporary directory of a test program. */
#ifndef BRIG_UNIT_ROOT_H
#define BRIG_UNIT_ROOT_H

#include <string.h>

#include "require.h"

static char root[64];

static const char *in_root(const char *name) {
    static char paths[8][256];
    static unsigned next;
    char *path = paths[next++ % 8];
    snprintf(path, 256, "%s/%s", root, name);
    return path;
}

static void put_file(const char *name, const char *text) {
    FILE *file = fopen(in_root(name), "w");
    REQUIRE(file && fputs(text, file) >= 0 && fclose(file) == 0);
}

static inline void require_file(const char *name, const char *text) {
    char content[64] = "";
    FILE *file = fopen(in_root(name), "r");
    REQUIRE(file && fread(content, 1, sizeof content - 1, file) == strlen(text) && fclose(file) == 0 && strcmp(content, text) == 0);
}

#endif
