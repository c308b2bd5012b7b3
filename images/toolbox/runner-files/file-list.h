/* The operation `list`. */
#ifndef BRIG_FILE_LIST_H
#define BRIG_FILE_LIST_H

#include "file-job.h"

uint32_t file_list_to_stream(const char *path, int out);
/* EOVERFLOW when the entries do not fit. */
uint32_t file_list_inline(const char *path, struct file_result *result);

#endif
