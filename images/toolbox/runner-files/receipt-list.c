#define _GNU_SOURCE
#include "receipt-list.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "file-protocol.h"
#include "io.h"
#include "reach.h"
#include "sha256.h"
#include "wire.h"

#define HASH_FILE_MAX (4u << 20)
#define HASH_ALL_MAX (32u << 20)

enum { SPECIAL_KIND, REPOSITORY_KIND, RULE_KINDS };

bool list_begin(struct receipt_list *list, uint32_t rules) {
    *list = (struct receipt_list){.kind_count = RULE_KINDS + rules + 1};
    list->kinds = calloc(list->kind_count, sizeof *list->kinds);
    return list->kinds;
}

static uint32_t kind_of(const struct receipt_list *list, uint16_t why, uint32_t rule) {
    if (why & (RECEIPT_SETID | RECEIPT_DEVICE | RECEIPT_CAPABILITIES)) return SPECIAL_KIND;
    if (why & RECEIPT_REPOSITORY) return REPOSITORY_KIND;
    return rule ? RULE_KINDS + rule - 1 : list->kind_count - 1;
}

static unsigned depth_of(const char *path) {
    unsigned depth = 0;
    for (; *path; path++) depth += *path == '/';
    return depth;
}

/* Inserts it behind those that are not deeper. */
static void insert(struct found_kind *kind, struct found *found) {
    struct found **at = &kind->first;
    while (*at && (*at)->depth <= found->depth) at = &(*at)->next;
    found->next = *at;
    *at = found;
    if (!found->next) kind->deepest = found->depth;
    kind->kept++;
}

static void drop_deepest(struct found_kind *kind) {
    struct found *before = kind->first;
    while (before->next->next) before = before->next;
    free(before->next);
    before->next = NULL;
    kind->deepest = before->depth;
    kind->kept--;
}

/* The kind that loses a record when there is no room. One of each kind is always kept, and there are fewer kinds than records. */
static struct found_kind *last_crowded(struct receipt_list *list) {
    while (list->last_crowded > 0 && list->kinds[list->last_crowded].kept < 2) list->last_crowded--;
    return &list->kinds[list->last_crowded];
}

void list_add(struct receipt_list *list, const char *path, const struct stat *st, uint16_t why, uint32_t rule) {
    uint32_t number = kind_of(list, why, rule);
    struct found_kind *kind = &list->kinds[number];
    kind->count++;
    unsigned depth = depth_of(path);
    bool is_full = list->kept >= RECEIPT_RECORDS_MAX;
    if (is_full && kind->kept > 0 && kind >= last_crowded(list) && depth >= kind->deepest) return;
    size_t length = strlen(path) + 1;
    struct found *found = malloc(sizeof *found + length);
    if (!found) return;
    *found = (struct found){.why = why, .rule = rule, .mode = st->st_mode, .uid = st->st_uid, .size = (uint64_t)st->st_size, .depth = depth};
    memcpy(found->path, path, length);
    insert(kind, found);
    list->kept++;
    if (kind->kept > 1 && number > list->last_crowded) list->last_crowded = number;
    if (!is_full) return;
    struct found_kind *crowded = last_crowded(list);
    if (crowded->kept < 2) return;
    drop_deepest(crowded);
    list->kept--;
}

/* False when there is no digest: the file is too large, or it is not a regular one any more. */
static bool hash_file(const char *path, uint64_t *hashed, uint8_t digest[32]) {
    static uint8_t chunk[64u << 10];
    char name[PATH_MAX];
    if (strlen(path) >= sizeof name) return false;
    strcpy(name, path);
    if (reach_directory_of(name, false) != 0) return false;
    int fd = openat(AT_FDCWD, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (fd < 0) return false;
    struct stat st;
    bool fits = fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && st.st_size <= HASH_FILE_MAX && *hashed + (uint64_t)st.st_size <= HASH_ALL_MAX;
    struct sha256 hash;
    sha256_begin(&hash);
    uint64_t size = 0;
    ssize_t n = 0;
    while (fits && (n = read(fd, chunk, sizeof chunk)) > 0) {
        size += (uint64_t)n;
        fits = size <= HASH_FILE_MAX;
        sha256_add(&hash, chunk, (size_t)n);
    }
    close(fd);
    *hashed += size;
    if (!fits || n < 0) return false;
    sha256_end(&hash, digest);
    return true;
}

static bool write_record(const struct found *found, int out, uint64_t *hashed) {
    uint8_t head[RECEIPT_RECORD_BYTES] = {0};
    size_t length = strlen(found->path);
    bool is_hashed = S_ISREG(found->mode) && hash_file(found->path, hashed, head + RECEIPT_DIGEST_AT);
    put16(head, (uint16_t)(found->why | (is_hashed ? RECEIPT_HASHED : 0)));
    put16(head + 2, (uint16_t)length);
    put32(head + 4, found->mode);
    put32(head + 8, found->uid);
    put32(head + 12, found->rule);
    put64(head + 16, found->size);
    return write_all(out, head, sizeof head) == 0 && write_all(out, found->path, length) == 0;
}

static bool write_all_records(const struct receipt_list *list, int out) {
    uint64_t hashed = 0;
    for (uint32_t i = 0; i < list->kind_count; i++)
        for (const struct found *found = list->kinds[i].first; found; found = found->next)
            if (!write_record(found, out, &hashed)) return false;
    return true;
}

bool list_write(const struct receipt_list *list, int out) {
    bool is_written = write_all_records(list, out);
    /* Files to be hashed are reached directory by directory. */
    return chdir("/") == 0 && is_written;
}

uint32_t list_counts(const struct receipt_list *list, uint8_t *to, uint32_t room, uint32_t *omitted) {
    uint32_t length = 0;
    *omitted = 0;
    for (uint32_t i = 0; i < list->kind_count; i++) {
        const struct found_kind *kind = &list->kinds[i];
        *omitted += kind->count - kind->kept;
        if (kind->count == kind->kept || length + RECEIPT_COUNT_BYTES > room) continue;
        put32(to + length, i);
        put32(to + length + 4, kind->count);
        length += RECEIPT_COUNT_BYTES;
    }
    return length;
}

void list_free(struct receipt_list *list) {
    for (uint32_t i = 0; list->kinds && i < list->kind_count; i++) {
        for (struct found *found = list->kinds[i].first, *next; found; found = next) {
            next = found->next;
            free(found);
        }
    }
    free(list->kinds);
    *list = (struct receipt_list){0};
}
