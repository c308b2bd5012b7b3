/* The way to the directory of a path, without following a symbolic link. */
#ifndef BRIG_REACH_H
#define BRIG_REACH_H

#include <stdbool.h>
#include <stdint.h>

/*
 * Makes the directory of an absolute path the current one and leaves "./NAME" in `path`; NAME itself may be a link. With `makes`,
 * directories that are missing are made. ELOOP when a directory is a symbolic link. Each name is checked as it is entered, so
 * nobody can put a link there between the check and the use.
 */
uint32_t reach_directory_of(char *path, bool makes);

#endif
