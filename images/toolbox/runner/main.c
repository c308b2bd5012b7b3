/* The command line of the runner. `serve` is PID 1 of a sandbox, or a second runner in it for another user. */
#define _GNU_SOURCE
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "scheduling.h"
#include "serve.h"
#include "wire.h"

static int usage(void) {
    fprintf(stderr, "usage: runner serve --token-hash HEX --lease SECONDS [--first-stream stdio] [--bridges none] [--copy-rights FROM:TO] | runner version\n");
    return 2;
}

static int nibble(char c) {
    if (c >= '0' && c <= '9') return c - '0';
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

static bool parse_hash(const char *text, uint8_t hash[32]) {
    if (strlen(text) != 64) return false;
    for (int i = 0; i < 32; i++) {
        int high = nibble(text[2 * i]), low = nibble(text[2 * i + 1]);
        if (high < 0 || low < 0) return false;
        hash[i] = (uint8_t)(high << 4 | low);
    }
    return true;
}

/* Gives a directory the owner and the mode of another one. Neither path has a colon. */
static bool copy_rights(char *paths) {
    char *to = strchr(paths, ':');
    struct stat st;
    if (!to) return false;
    *to++ = '\0';
    if (stat(paths, &st) == 0 && chown(to, st.st_uid, st.st_gid) == 0 && chmod(to, st.st_mode & 07777) == 0) return true;
    fprintf(stderr, "brig: %s cannot be given the owner and mode of %s: %s\n", to, paths, strerror(errno));
    return false;
}

static int serve_with(int argc, char **argv) {
    uint8_t hash[32];
    bool has_hash = false, has_stream = false, takes_bridges = true;
    unsigned long long lease = 60;
    for (int i = 2; i + 1 < argc; i += 2) {
        if (strcmp(argv[i], "--token-hash") == 0) has_hash = parse_hash(argv[i + 1], hash);
        else if (strcmp(argv[i], "--lease") == 0) lease = strtoull(argv[i + 1], NULL, 10);
        else if (strcmp(argv[i], "--first-stream") == 0 && strcmp(argv[i + 1], "stdio") == 0) has_stream = true;
        else if (strcmp(argv[i], "--bridges") == 0 && strcmp(argv[i + 1], "none") == 0) takes_bridges = false;
        else if (strcmp(argv[i], "--copy-rights") == 0) {
            if (!copy_rights(argv[i + 1])) return 1;
        } else return usage();
    }
    return has_hash ? serve(hash, lease * 1000, has_stream, takes_bridges) : usage();
}

int main(int argc, char **argv) {
    prctl(PR_SET_DUMPABLE, 0);
    scheduling_remember();
    const char *command = argc > 1 ? argv[1] : "";
    if (strcmp(command, "serve") == 0) return serve_with(argc, argv);
    if (strcmp(command, "version") == 0) return printf("brig runner, protocol %u\n", PROTOCOL_VERSION) > 0 ? 0 : 1;
    return usage();
}
