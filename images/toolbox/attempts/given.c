#include "attempts.h"

#include <stdlib.h>
#include <string.h>

static char **values;
static int count;

void give(int argc, char **argv) {
    values = argv;
    count = argc;
}

const char *given(const char *name, int at) {
    size_t length = strlen(name);
    for (int i = 0; i < count; i++)
        if (strncmp(values[i], name, length) == 0 && values[i][length] == '=' && at-- == 0) return values[i] + length + 1;
    return NULL;
}

const char *need(const char *name) {
    const char *value = given(name, 0);
    if (!value) untried("there is nothing to try it on");
    return value;
}

long given_number(const char *name) {
    return strtol(need(name), NULL, 10);
}
