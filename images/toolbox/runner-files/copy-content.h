/* Copies the content of one file to another. */
#ifndef BRIG_COPY_CONTENT_H
#define BRIG_COPY_CONTENT_H

#include <stdint.h>

#include "file-job.h"

/*
 * Copies the present content of the regular file `from` to the empty file `to`, at most `size` bytes. Holes stay holes, so a huge sparse
 * file takes no time and no space. The number of all other bytes is subtracted from `bytes_left`. On file systems that can do it, both
 * files share the data. Returns an errno: EFBIG if more bytes would have to be copied than are left.
 */
uint32_t copy_content(const struct file_job *job, int from, int to, uint64_t size, uint64_t *bytes_left);

#endif
