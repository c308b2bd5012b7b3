/* The operation `write`. The new content is written beside the file and then takes its place, so nobody ever sees half of it. */
#ifndef BRIG_FILE_WRITE_H
#define BRIG_FILE_WRITE_H

#include "file-job.h"
#include "file-request.h"

/* `path` has room for PATH_MAX bytes and may be changed. */
uint32_t file_write(const struct file_job *job, const struct file_request *request, char *path);

#endif
