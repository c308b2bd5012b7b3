/*
 * The records of a receipt. A session may leave any number of findings, so only RECEIPT_RECORDS_MAX are kept: of each kind the finding
 * that lies highest in the tree, then as many as there is room for of the first kind, the second and so on. So one kind cannot displace
 * another, nor files further down a directory's own file. All are counted.
 */
#ifndef BRIG_RECEIPT_LIST_H
#define BRIG_RECEIPT_LIST_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/stat.h>

struct found {
    uint16_t why;
    uint32_t rule; /* its number, or 0 */
    uint32_t mode, uid;
    uint64_t size;
    unsigned depth;
    struct found *next;
    char path[];
};

struct found_kind {
    uint32_t count, kept;
    unsigned deepest; /* the greatest depth of those that are kept */
    struct found *first;
};

/* Kinds: special rights, repositories, one for each rule, and files that belong to others. */
struct receipt_list {
    struct found_kind *kinds;
    uint32_t kind_count, kept;
    uint32_t last_crowded; /* no later kind has more than one that is kept */
};

/* False when there is no memory. */
bool list_begin(struct receipt_list *list, uint32_t rules);
void list_add(struct receipt_list *list, const char *path, const struct stat *st, uint16_t why, uint32_t rule);

/* Writes the records, with digests of the files' contents. False when that is not possible. */
bool list_write(const struct receipt_list *list, int out);

/* Writes the count of each kind that was not kept in full, in at most `room` bytes. Returns how many bytes; `*omitted` counts the rest. */
uint32_t list_counts(const struct receipt_list *list, uint8_t *to, uint32_t room, uint32_t *omitted);
void list_free(struct receipt_list *list);

#endif
