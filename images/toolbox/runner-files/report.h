/* The operation `report`: the kernel's view of this container, for the host to compare with the policy. */
#ifndef BRIG_REPORT_H
#define BRIG_REPORT_H

/* Writes the report to `out`. `paths` are separated by newlines; each is described too. 0, or -1 with errno. */
int report_write(int out, const char *paths);

#endif
