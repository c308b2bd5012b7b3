#ifndef COPY_H
#define COPY_H

/* Copies this program to a new file that everybody may run. 0 or errno. */
int copy_self(const char *to);
/* Takes "read-only" away from a mount, if that is permitted. */
void mount_again(const char *path);
/* Runs a program with one argument; what it prints is in `answer`. 0, or the errno with which it could not be started. */
int run_program(const char *path, const char *argument, char answer[16]);

#endif
