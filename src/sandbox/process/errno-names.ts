/**
 * Linux numbers: the container's kernel is Linux whatever the host is, so the host's own table does not
 * serve.
 */
const names: Readonly<Record<number, string>> = {
  1: "EPERM",
  2: "ENOENT",
  4: "EINTR",
  5: "EIO",
  7: "E2BIG",
  8: "ENOEXEC",
  9: "EBADF",
  11: "EAGAIN",
  12: "ENOMEM",
  13: "EACCES",
  16: "EBUSY",
  17: "EEXIST",
  18: "EXDEV",
  20: "ENOTDIR",
  21: "EISDIR",
  22: "EINVAL",
  23: "ENFILE",
  24: "EMFILE",
  26: "ETXTBSY",
  27: "EFBIG",
  28: "ENOSPC",
  30: "EROFS",
  32: "EPIPE",
  36: "ENAMETOOLONG",
  38: "ENOSYS",
  39: "ENOTEMPTY",
  40: "ELOOP",
  75: "EOVERFLOW",
  95: "EOPNOTSUPP",
  97: "EAFNOSUPPORT",
  116: "ESTALE",
  122: "EDQUOT",
  125: "ECANCELED",
};

export function errnoName(errno: number): string {
  return names[errno] ?? `errno ${errno}`;
}
