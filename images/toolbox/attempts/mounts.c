#include "attempts.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The kernel writes some characters of a path as \ooo. */
static void unescape(char *path) {
    char *to = path;
    for (const char *from = path; *from; to++) {
        if (from[0] == '\\' && from[1] && from[2] && from[3]) {
            *to = (char) ((from[1] - '0') * 64 + (from[2] - '0') * 8 + (from[3] - '0'));
            from += 4;
        } else {
            *to = *from++;
        }
    }
    *to = '\0';
}

void each_mount(void (*visit)(const struct mount_point *)) {
    FILE *file = fopen("/proc/self/mountinfo", "re");
    if (!file) untried("the mounts cannot be read");
    char *line = NULL;
    size_t size = 0;
    while (getline(&line, &size, file) > 0) {
        char *right = strstr(line, " - ");
        if (!right) continue;
        *right = '\0';
        struct mount_point mount = {0};
        char options[1024] = "";
        if (sscanf(line, "%*s %*s %*s %*s %4095s %1023s", mount.path, options) != 2) continue;
        if (sscanf(right + 3, "%63s", mount.type) != 1) continue;
        unescape(mount.path);
        mount.is_shared = strstr(line, " shared:") != NULL;
        mount.is_writable = strncmp(options, "rw", 2) == 0;
        visit(&mount);
    }
    free(line);
    fclose(file);
}
