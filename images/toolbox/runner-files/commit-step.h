/* One step of a commit, which changes the file under one name. Each step can be done and undone. */
#ifndef BRIG_COMMIT_STEP_H
#define BRIG_COMMIT_STEP_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/stat.h>

#include "commit-place.h"

enum step_kind {
    STEP_INSTALL = 1, /* something in the stage gets a name that is free */
    STEP_EXCHANGE,    /* something in the stage changes places with the file that has the name */
    STEP_TAKE,        /* the file that has the name is moved into the stage */
    STEP_MODE,        /* a directory gets another mode */
};

#define STAGED_NAME_MAX 16
#define NO_MODE UINT32_MAX

struct step {
    uint8_t kind;
    bool makes_directory;
    bool cannot_move; /* a directory of an overlay's lower layer, which is removed in its place after all other steps */
    uint32_t index;    /* of the record */
    uint32_t old_mode; /* of a directory that is replaced, moved or changed; otherwise NO_MODE */
    uint64_t new_ino, old_ino;
    char staged[STAGED_NAME_MAX];
    const char *path;
};

/* Returns an errno: EXDEV for a directory that cannot be moved. Nothing was done then. */
uint32_t step_do(struct commit_target *target, const struct step *step);
/* Looks at the file that the step has replaced or removed, which is now in the stage. */
bool step_look_at_old(const struct commit_target *target, const struct step *step, struct stat *st);
/* The step may have been done, done in part, or not at all. Returns an errno if the state before it cannot be restored. */
uint32_t step_undo(struct commit_target *target, const struct step *step);
/*
 * Does a step whose directory cannot be moved: removes the directory with everything below it, if it is still the same one, and installs
 * what is in the stage. This cannot be undone. If it was interrupted, call it again. Returns an errno.
 */
uint32_t step_remove_in_place(struct commit_target *target, const struct step *step);
/* If the step makes or changes a directory, makes that writable, so that what is in it can be undone. */
void step_open_directory(struct commit_target *target, const struct step *step);

/* Changes the mode of a directory, and its time unless that is NULL. Returns an errno. */
uint32_t place_set_directory(struct place place, uint32_t mode, const struct timespec *mtime);

#endif
