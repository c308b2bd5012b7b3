/* The operation `copy`, which copies paths from one tree to another that nobody uses yet. */
#ifndef BRIG_COPY_H
#define BRIG_COPY_H

#include "file-job.h"
#include "file-request.h"

uint32_t copy_run(const struct file_job *job, const struct file_request *request, struct file_result *result);

#endif
