/* The operation `changes`: lists how the merged tree of an overlay differs from its base, the directory below it. */
#ifndef BRIG_CHANGES_H
#define BRIG_CHANGES_H

#include "file-job.h"
#include "file-request.h"

uint32_t changes_run(const struct file_job *job, const struct file_request *request, struct file_result *result);

#endif
