/* The receipt of a session: see PROTOCOL.md. */
#ifndef BRIG_RECEIPT_H
#define BRIG_RECEIPT_H

#include <stdint.h>

#include "wire.h"
#include "worker.h"

enum receipt_reason {
    RECEIPT_RUNS = 1,
    RECEIPT_SETID = 2,
    RECEIPT_DEVICE = 4,
    RECEIPT_CAPABILITIES = 8,
    RECEIPT_FOREIGN = 16,
    RECEIPT_REPOSITORY = 32,
    RECEIPT_STRIPPED = 64,
    RECEIPT_HASHED = 128,
};
enum receipt_end { RECEIPT_FINISHED, RECEIPT_NO_TIME, RECEIPT_CLOSED, RECEIPT_NO_STREAM };
enum receipt_flags { RECEIPT_STRIPS = 1 };

/* In PID 1, before anything else runs: what is older was there before. */
void receipt_note_start(void);

/* In the worker. */
uint32_t receipt_run(const struct file_operation_job *job, const struct file_request *request, struct worker_report *report, uint8_t *result);

#endif
