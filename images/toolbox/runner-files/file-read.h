/* The operation `read`. */
#ifndef BRIG_FILE_READ_H
#define BRIG_FILE_READ_H

#include "file-job.h"
#include "file-request.h"

uint32_t file_read(const struct file_request *request, const char *path, int out, struct file_result *result);

#endif
