/*
 * The journal of a commit lists its steps. It is in the stage until all of them are done, so that they can be undone if the container
 * dies meanwhile. It is written once, before the first step; which steps were done can be seen from where the files are. Other processes
 * may write to the target, and could forge a journal that moves files as they like, so the journal contains an authentication code that
 * only the host's key can make.
 *
 * Directories that cannot be moved are removed after all steps, and are listed in a second journal. This one is used once the first
 * journal is closed: from then on the commit is not undone any more, and `recover` finishes it.
 */
#ifndef BRIG_COMMIT_JOURNAL_H
#define BRIG_COMMIT_JOURNAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "commit-step.h"
#include "file-protocol.h"

struct journal {
    struct step *steps;
    size_t count;
    uint8_t *bytes; /* of a journal that was read; the paths of the steps point into it */
};

enum journal_kind { JOURNAL_OF_STEPS, JOURNAL_OF_REMOVALS };

/* These return an errno. */
uint32_t journal_write(int stage, const uint8_t key[COMMIT_KEY_BYTES], const struct step *steps, size_t count, enum journal_kind kind);
/* ENOENT if there is none, EBADMSG if it is damaged or was written with another key. Free the journal in any case. */
uint32_t journal_read(int stage, const uint8_t key[COMMIT_KEY_BYTES], struct journal *journal, enum journal_kind kind);
/* Marks the steps as done, so that `recover` does not undo them. */
uint32_t journal_close(int stage);
void journal_free(struct journal *journal);

#endif
