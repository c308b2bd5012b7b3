/* Turns the records of a commit into steps, and prepares in the stage what the steps will install. */
#ifndef BRIG_COMMIT_PREPARE_H
#define BRIG_COMMIT_PREPARE_H

#include "commit-place.h"
#include "commit-step.h"

/*
 * Makes the step for a record; `now` is what its path names at present. `step->kind` stays 0 if there is nothing to do. Returns an errno:
 * EBADF if the stage does not have the content of a put, as a regular file with no other name.
 */
uint32_t commit_prepare(const struct commit_target *target, const struct commit_record *record, const struct stat *now, struct step *step);

/*
 * Gives an open file the owner, the mode and the time of its record. A file with a second name is refused with EBADF: that name could be
 * outside the stage, and the file there would get another mode.
 */
uint32_t commit_prepare_file(int fd, const struct commit_record *record, struct stat *st);
/* Makes the directory or the symbolic link of a record under a name in the stage. A directory does not get its mode yet. */
uint32_t commit_make(int stage, const char *name, const struct commit_record *record, struct stat *st);

#endif
