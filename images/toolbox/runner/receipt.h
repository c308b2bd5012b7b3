/* The receipt of a session: see PROTOCOL.md. */
#ifndef BRIG_RECEIPT_H
#define BRIG_RECEIPT_H

#include <stdint.h>

#include "wire.h"
#include "worker.h"

/* In PID 1, before anything else runs: what is older was there before. */
void receipt_note_start(void);

/* In the worker. */
uint32_t receipt_run(const struct file_operation_job *job, const struct file_request *request, struct worker_report *report, uint8_t *result);

#endif
