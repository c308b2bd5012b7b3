/* Compares the contents of two files, and the targets of two links. */
#ifndef BRIG_SAME_CONTENT_H
#define BRIG_SAME_CONTENT_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "file-job.h"

struct named_file {
    int directory;
    const char *name;
};

/*
 * Compares two regular files. Holes are skipped, so a huge sparse file takes no time. `is_same` is set to false if one of the files is no
 * longer a regular file, or changes while it is read. Returns an errno if a file cannot be read.
 */
uint32_t compare_content(const struct file_job *job, struct named_file one, struct named_file other, bool *is_same);

/* The length is 0 if the link is not there any more. Returns an errno, as the next function does. */
uint32_t read_target(struct named_file link, char target[PATH_MAX], size_t *length);
uint32_t compare_targets(struct named_file one, struct named_file other, bool *is_same);

/* Whether an errno means that something could not be found out. Others mean that a name is gone, replaced, or not accessible. */
bool is_failure(int error);

#endif
