/* Takes away rights that no file of a session should have. */
#ifndef BRIG_RECEIPT_STRIP_H
#define BRIG_RECEIPT_STRIP_H

#include <stdint.h>
#include <sys/stat.h>

/* Takes away special rights, and removes a device. Returns RECEIPT_STRIPPED if it did, or 0. `why` says what the file has. */
uint16_t receipt_strip(int directory, const char *name, const struct stat *st, uint16_t why);

#endif
