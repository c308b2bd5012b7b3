/* File operations, as a worker runs them: inside the container and as its user, so the kernel decides what they may do. */
#ifndef BRIG_FILES_H
#define BRIG_FILES_H

#include "file-job.h"
#include "job.h"

/* `result` has room for RESULT_MAX bytes. The report says how many of them are used. */
void file_operation_run(const struct file_job *job, struct worker_report *report, uint8_t *result);

#endif
