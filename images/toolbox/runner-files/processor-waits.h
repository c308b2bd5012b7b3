/* The time that programs have waited for a processor, thread by thread. */
#ifndef BRIG_PROCESSOR_WAITS_H
#define BRIG_PROCESSOR_WAITS_H

#include <stdint.h>

#include "file-job.h"

/* The operation `waits`. Returns its errno: ENOENT if the kernel does not count this time. */
uint32_t waits_list(const struct file_job *job, struct file_result *result);

#endif
