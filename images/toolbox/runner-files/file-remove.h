/* The operation `remove`. */
#ifndef BRIG_FILE_REMOVE_H
#define BRIG_FILE_REMOVE_H

#include "file-job.h"

/* Not a flag of requests: first gives the owner of a directory all permissions for it, so that it can be emptied. */
#define REMOVE_WITHOUT_RIGHTS 64u

uint32_t file_remove(const struct file_job *job, const char *path, uint8_t flags);

#endif
