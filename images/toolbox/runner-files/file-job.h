/* A file operation as a worker sees it. */
#ifndef BRIG_FILE_JOB_H
#define BRIG_FILE_JOB_H

#include <stddef.h>
#include <stdint.h>

#include "file-protocol.h"
#include "job.h"

struct file_job {
    const uint8_t *request; /* the payload of the FILE frame */
    size_t size;
    int stream; /* the operation's own stream, to the host or from it, if it has one */
    const volatile uint32_t *cancelled; /* becomes true when nobody wants the operation any more */
    const struct shared *shared;
};

/* The bytes of EXIT behind its head. There is room for RESULT_MAX bytes. */
struct file_result {
    uint8_t *bytes;
    uint32_t length;
};

#endif
