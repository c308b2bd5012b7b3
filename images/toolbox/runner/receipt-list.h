/*
 * The records of a receipt. There may be no end to what a session leaves, so only RECEIPT_RECORDS_MAX of them are kept: for each kind the one
 * that lies highest in the tree, then as many as there is room for of the first kind, the second and so on. So nobody can push one kind out
 * with another, nor a directory's own file with those further down. All are counted.
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
    unsigned deepest; /* of those that are kept */
    struct found *first;
};

/* Kinds: special rights, repositories, one for each rule, and what belongs to others. */
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

/* Writes how many there are of each kind of which some were left out: at most so many bytes. Returns how many, and counts what was left out. */
uint32_t list_counts(const struct receipt_list *list, uint8_t *to, uint32_t room, uint32_t *omitted);
void list_free(struct receipt_list *list);

#endif
