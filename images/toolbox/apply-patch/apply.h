/* Applies a patch to the files. */
#ifndef BRIG_APPLY_H
#define BRIG_APPLY_H

#include "patch.h"

/*
 * Returns NO_TEXT, or the failure. Relative paths start at `directory`. All hunks are checked in order before the first file is changed,
 * and if one does not fit, no file is. If a change fails after that, the changes before it stay.
 */
struct text apply_patch(const struct patch *patch, struct text directory);

#endif
