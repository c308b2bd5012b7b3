/* The operation `remove`. */
#ifndef BRIG_FILE_REMOVE_H
#define BRIG_FILE_REMOVE_H

#include "file-job.h"

uint32_t file_remove(const struct file_job *job, const char *path, uint8_t flags);

#endif
