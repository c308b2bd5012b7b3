/*
 * The operation `receipt`: it finds files of a session that a program of the user would run or obey later, or that have rights of
 * their own. It looks for them inside the container, where no name leads out.
 */
#ifndef BRIG_RECEIPT_H
#define BRIG_RECEIPT_H

#include "file-job.h"
#include "file-request.h"

uint32_t receipt_run(const struct file_job *job, const struct file_request *request, struct file_result *result);

#endif
