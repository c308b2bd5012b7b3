/* Going to where a path leads, but through no symbolic link. */
#ifndef BRIG_REACH_H
#define BRIG_REACH_H

#include <stdbool.h>
#include <stdint.h>

/*
 * Enters the directory of an absolute path and leaves "./NAME" of the path, its last name, which may itself be a link. With
 * `makes`, directories that are missing are made. ELOOP where another name is a link: at the moment it is entered, so nobody can
 * put one there after a look.
 */
uint32_t reach_directory_of(char *path, bool makes);

#endif
