/* A fault that the sanitizers must find. A test runs it to be sure that their reports are seen at all. */
#include <stdlib.h>
#include <string.h>

int main(int argc, char **argv) {
    size_t length = strlen(argv[argc - 1]);
    char *copy = malloc(length);
    if (!copy) return 2;
    memcpy(copy, argv[argc - 1], length + 1);
    int seen = copy[0];
    free(copy);
    return seen == 0;
}
