/* Finds the processes that have certain connections, and the calls that these processes belong to. */
#ifndef BRIG_SOCKET_OWNERS_H
#define BRIG_SOCKET_OWNERS_H

#include "file-job.h"
#include "file-request.h"

/* The operation `owners`. Returns its errno. */
uint32_t owners_find(const struct file_job *job, const struct file_request *request, struct file_result *result);

#endif
