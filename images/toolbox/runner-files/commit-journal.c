#define _GNU_SOURCE
#include "commit-journal.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "beneath.h"
#include "io.h"
#include "sha256.h"
#include "wire.h"

#define STEP_BYTES 48u
#define CODE_BYTES 32u
#define JOURNAL_MAX (256u << 20)

static const char *const names[] = {[JOURNAL_OF_STEPS] = "journal", [JOURNAL_OF_REMOVALS] = "removals"};

static void hash_with(const uint8_t key[COMMIT_KEY_BYTES], uint8_t pad, const uint8_t *data, size_t size, uint8_t digest[CODE_BYTES]) {
    uint8_t block[64];
    struct sha256 hash;
    for (size_t i = 0; i < sizeof block; i++) block[i] = (uint8_t)((i < COMMIT_KEY_BYTES ? key[i] : 0) ^ pad);
    sha256_begin(&hash);
    sha256_add(&hash, block, sizeof block);
    sha256_add(&hash, data, size);
    sha256_end(&hash, digest);
}

/* HMAC-SHA-256, RFC 2104. */
static void authenticate(const uint8_t key[COMMIT_KEY_BYTES], const uint8_t *data, size_t size, uint8_t code[CODE_BYTES]) {
    uint8_t inner[CODE_BYTES];
    hash_with(key, 0x36, data, size, inner);
    hash_with(key, 0x5c, inner, sizeof inner, code);
}

/* The kind of the journal is authenticated too, so that nobody can rename one to the other. */
static void encode(uint8_t *to, const struct step *step, size_t length, enum journal_kind kind) {
    memset(to, 0, STEP_BYTES);
    to[0] = step->kind;
    to[1] = step->makes_directory;
    to[2] = (uint8_t)kind;
    put32(to + 4, step->index);
    put32(to + 8, step->old_mode);
    put32(to + 12, (uint32_t)length);
    put64(to + 16, step->new_ino);
    put64(to + 24, step->old_ino);
    memcpy(to + 32, step->staged, STAGED_NAME_MAX);
    memcpy(to + STEP_BYTES, step->path, length + 1);
}

static bool is_listed(const struct step *step, enum journal_kind kind) { return kind == JOURNAL_OF_STEPS || step->cannot_move; }

static uint32_t write_file(int stage, const char *name, const uint8_t *bytes, size_t size) {
    int fd = openat(stage, "journal.new", O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    uint32_t error = fd < 0 || write_all(fd, bytes, size) != 0 ? (uint32_t)errno : 0;
    if (fd >= 0 && close(fd) != 0 && !error) error = (uint32_t)errno;
    if (!error && renameat(stage, "journal.new", stage, name) != 0) error = (uint32_t)errno;
    return error;
}

uint32_t journal_write(int stage, const uint8_t key[COMMIT_KEY_BYTES], const struct step *steps, size_t count, enum journal_kind kind) {
    size_t size = CODE_BYTES;
    for (size_t i = 0; i < count; i++)
        if (is_listed(&steps[i], kind)) size += STEP_BYTES + strlen(steps[i].path) + 1;
    if (size > JOURNAL_MAX) return EFBIG;
    uint8_t *bytes = malloc(size), *at = bytes + CODE_BYTES;
    if (!bytes) return ENOMEM;
    for (size_t i = 0; i < count; i++) {
        size_t length = strlen(steps[i].path);
        if (!is_listed(&steps[i], kind)) continue;
        encode(at, &steps[i], length, kind);
        at += STEP_BYTES + length + 1;
    }
    authenticate(key, bytes + CODE_BYTES, size - CODE_BYTES, bytes);
    uint32_t error = write_file(stage, names[kind], bytes, size);
    free(bytes);
    return error;
}

uint32_t journal_close(int stage) { return renameat(stage, "journal", stage, "journal.done") == 0 ? 0 : (uint32_t)errno; }

static uint32_t read_whole(int fd, uint8_t **bytes, size_t *size) {
    struct stat st;
    if (fstat(fd, &st) != 0) return (uint32_t)errno;
    if (!S_ISREG(st.st_mode) || st.st_size < CODE_BYTES || st.st_size > JOURNAL_MAX) return EBADMSG;
    *bytes = malloc((size_t)st.st_size);
    if (!*bytes) return ENOMEM;
    while (*size < (size_t)st.st_size) {
        ssize_t n = read(fd, *bytes + *size, (size_t)st.st_size - *size);
        if (n < 0 && errno == EINTR) continue;
        if (n <= 0) return n < 0 ? (uint32_t)errno : EBADMSG;
        *size += (size_t)n;
    }
    return 0;
}

/* Returns the size of the step, or 0 if it is invalid. */
static size_t decode(const uint8_t *from, size_t size, struct step *step, enum journal_kind kind) {
    if (size < STEP_BYTES) return 0;
    uint32_t length = get32(from + 12);
    const char *path = (const char *)from + STEP_BYTES;
    if (size - STEP_BYTES <= length || path[length] != 0 || !is_path_below(path, length) || from[47] != 0 || from[2] != kind) return 0;
    *step = (struct step){.kind = from[0], .makes_directory = from[1], .cannot_move = kind == JOURNAL_OF_REMOVALS, .index = get32(from + 4), .old_mode = get32(from + 8)};
    step->new_ino = get64(from + 16);
    step->old_ino = get64(from + 24);
    memcpy(step->staged, from + 32, STAGED_NAME_MAX);
    step->path = path;
    return STEP_BYTES + length + 1;
}

static uint32_t parse(struct journal *journal, size_t size, enum journal_kind kind) {
    const uint8_t *at = journal->bytes + CODE_BYTES, *end = journal->bytes + size;
    size_t most = size / STEP_BYTES;
    journal->steps = calloc(most + 1, sizeof *journal->steps);
    if (!journal->steps) return ENOMEM;
    while (at < end) {
        size_t used = journal->count < most ? decode(at, (size_t)(end - at), &journal->steps[journal->count], kind) : 0;
        if (used == 0) return EBADMSG;
        journal->count++;
        at += used;
    }
    return 0;
}

uint32_t journal_read(int stage, const uint8_t key[COMMIT_KEY_BYTES], struct journal *journal, enum journal_kind kind) {
    uint8_t code[CODE_BYTES];
    size_t size = 0;
    *journal = (struct journal){0};
    int fd = openat(stage, names[kind], O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (fd < 0) return (uint32_t)errno;
    uint32_t error = read_whole(fd, &journal->bytes, &size);
    close(fd);
    if (error) return error;
    authenticate(key, journal->bytes + CODE_BYTES, size - CODE_BYTES, code);
    uint8_t difference = 0;
    for (size_t i = 0; i < CODE_BYTES; i++) difference |= code[i] ^ journal->bytes[i];
    return difference ? EBADMSG : parse(journal, size, kind);
}

void journal_free(struct journal *journal) {
    free(journal->steps);
    free(journal->bytes);
}
