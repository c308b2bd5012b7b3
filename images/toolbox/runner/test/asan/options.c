/*
 * How the sanitizers report inside a sandbox. The environment could say so too, but a program that its user may not read
 * cannot read /proc/self/environ before main either, and that is where they look.
 */
const char *__asan_default_options(void);
const char *__ubsan_default_options(void);

/* Reports go to a file, because standard error is /dev/null in PID 1. LeakSanitizer is off: it uses ptrace, which seccomp denies. */
#define WHERE "log_path=/tmp/asan:print_stacktrace=1:allow_addr2line=1"

/* A small quarantine, so that PID 1 stays small enough to see whether it grows. */
const char *__asan_default_options(void) { return WHERE ":detect_leaks=0:detect_stack_use_after_return=1:quarantine_size_mb=8"; }
const char *__ubsan_default_options(void) { return WHERE ":halt_on_error=1"; }
