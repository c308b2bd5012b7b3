/* The operations `commit`, which changes all the given paths below a directory or none, and `recover`, which undoes a commit that was cut off. */
#ifndef BRIG_COMMIT_H
#define BRIG_COMMIT_H

#include "file-job.h"
#include "file-request.h"

uint32_t commit_run(const struct file_job *job, const struct file_request *request, struct file_result *result);
uint32_t commit_recover(const struct file_request *request, struct file_result *result);

#endif
