/* Writing to a descriptor that blocks. */
#ifndef BRIG_IO_H
#define BRIG_IO_H

#include <stddef.h>

/* Returns 0 once every byte is written, or -1 with errno. */
int write_all(int fd, const void *data, size_t size);

#endif
