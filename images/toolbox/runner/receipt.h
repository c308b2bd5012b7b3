/*
 * The operation `receipt`: what a session leaves behind that a program of the user would run or obey later, or that has rights of
 * its own. It is looked for inside the container, where no name leads out.
 */
#ifndef BRIG_RECEIPT_H
#define BRIG_RECEIPT_H

#include <stdint.h>

#include "file-job.h"
#include "wire.h"

/* Call in PID 1 before anything else runs. A file that has not changed since then is not of this session. */
void receipt_note_start(void);

/* In the worker. */
uint32_t receipt_run(const struct file_job *job, const struct file_request *request, struct file_result *result);

#endif
