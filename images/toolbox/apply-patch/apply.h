/* Does what a patch says to the files. */
#ifndef BRIG_APPLY_H
#define BRIG_APPLY_H

#include "patch.h"

/*
 * NO_TEXT, or why not. Relative paths start at `directory`. All hunks are checked, one after the other, before the first file is changed,
 * and where one does not fit nothing is; a change that fails then leaves those before it.
 */
struct text apply_patch(const struct patch *patch, struct text directory);

#endif
