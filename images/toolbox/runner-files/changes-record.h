/* The records of the operation `changes`: written to the host, or left out and only counted. */
#ifndef BRIG_CHANGES_RECORD_H
#define BRIG_CHANGES_RECORD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>

#include "sha256.h"

struct change {
    uint8_t kind; /* a change_kind */
    const char *path;
    size_t path_length;
    const struct stat *now, *before; /* NULL for what is not there */
    int64_t changed_at;              /* the file system's time of the change */
    const char *target;              /* of a symbolic link */
    size_t target_length;
    uint64_t below; /* the number of entries at any depth in a deleted directory */
};

struct changes_output {
    int out;
    int64_t since;
    uint64_t written, left_out;
    struct sha256 left_out_hash;
    size_t used;
};

void changes_output_begin(struct changes_output *o, int out, int64_t since);
/* Returns whether the change is older than `since`. If so, it is counted and not to be written. */
bool changes_leave_out(struct changes_output *o, const struct change *change);
/* These return an errno. */
uint32_t changes_write(struct changes_output *o, const struct change *change);
uint32_t changes_flush(struct changes_output *o);

#endif
