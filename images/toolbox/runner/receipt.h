/*
 * The operation `receipt`: it finds files of a session that a program of the user would run or obey later, or that have rights of
 * their own. It looks for them inside the container, where no name leads out.
 */
#ifndef BRIG_RECEIPT_H
#define BRIG_RECEIPT_H

#include <stdint.h>

#include "file-job.h"
#include "wire.h"

/* Call in PID 1 before anything else runs. A file that has not changed since then is not of this session. */
void receipt_note_start(void);

/* Runs the operation, in the worker. */
uint32_t receipt_run(const struct file_job *job, const struct file_request *request, struct file_result *result);

#endif
