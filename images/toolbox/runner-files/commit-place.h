/* The directory that a commit changes, the stage in it, and the places of records below it. */
#ifndef BRIG_COMMIT_PLACE_H
#define BRIG_COMMIT_PLACE_H

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/stat.h>

#include "commit-records.h"

struct commit_target {
    int root, stage;
    /* The directory of the last path. Records are in the order of their paths, so the next path is often in the same directory. */
    int parent;
    char parent_path[PATH_MAX];
};

/* The place of a path: a name in an open directory. */
struct place {
    int directory;
    const char *name;
};

/* Opens the directory in which a path is. It stays open until the next call. Returns an errno. */
uint32_t place_find(struct commit_target *target, const char *path, struct place *place);
/* Closes the directory of the last path. Call it when a directory on the way there may have been replaced. */
void place_forget(struct commit_target *target);
/* Returns false if that fails, with errno 0 if nothing is there. */
bool place_look(struct place place, struct stat *st);

/*
 * Checks that the path of a record is in the state that the record expects, and sets `now` to what is there (st_mode 0: nothing).
 * Returns a conflict_reason, or 0.
 */
uint32_t place_check(struct commit_target *target, const struct commit_records *records, const struct commit_record *record, struct stat *now);

#endif
