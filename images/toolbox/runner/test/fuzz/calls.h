/*
 * Replaces some system calls of the runner, so that a test can make them fail, be interrupted, or handle only some of the bytes. Without such
 * a request, the real calls are made.
 */
enum call { READ, WRITE, SEND, RECV, RECVFROM, RECVMSG, ACCEPT, CONNECT, LISTEN, SOCKET, SHUTDOWN, GETSOCKOPT, FORK, PIPE, MALLOC, CALLOC, CALLS };

static struct {
    int after, times, error; /* after so many that are left alone, so many fail with this errno */
    size_t most;             /* bytes at once, or 0 for any number */
} trouble[CALLS];

static bool fails(enum call call) {
    if (trouble[call].times == 0) return false;
    if (trouble[call].after > 0) {
        trouble[call].after--;
        return false;
    }
    trouble[call].times--;
    errno = trouble[call].error;
    return true;
}

static size_t part_of(enum call call, size_t size) { return trouble[call].most && trouble[call].most < size ? trouble[call].most : size; }

#define read(fd, to, size) (fails(READ) ? -1 : read(fd, to, part_of(READ, size)))
#define write(fd, from, size) (fails(WRITE) ? -1 : write(fd, from, part_of(WRITE, size)))
#define send(fd, from, size, flags) (fails(SEND) ? -1 : send(fd, from, part_of(SEND, size), flags))
#define recv(fd, to, size, flags) (fails(RECV) ? -1 : recv(fd, to, part_of(RECV, size), flags))
#define recvfrom(...) (fails(RECVFROM) ? -1 : recvfrom(__VA_ARGS__))
#define recvmsg(...) (fails(RECVMSG) ? -1 : recvmsg(__VA_ARGS__))
#define accept4(...) (fails(ACCEPT) ? -1 : accept4(__VA_ARGS__))
#define connect(...) (fails(CONNECT) ? -1 : connect(__VA_ARGS__))
#define listen(...) (fails(LISTEN) ? -1 : listen(__VA_ARGS__))
#define socket(...) (fails(SOCKET) ? -1 : socket(__VA_ARGS__))
#define shutdown(...) (fails(SHUTDOWN) ? -1 : shutdown(__VA_ARGS__))
#define getsockopt(...) (fails(GETSOCKOPT) ? -1 : getsockopt(__VA_ARGS__))
#define pipe2(...) (fails(PIPE) ? -1 : pipe2(__VA_ARGS__))
#define malloc(size) (fails(MALLOC) ? NULL : malloc(size))
#define calloc(count, size) (fails(CALLOC) ? NULL : calloc(count, size))
