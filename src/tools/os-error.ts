import { BrigError, isBrigError } from "../errors.js";

/** Linux's errors in the words that models have seen. */
const texts: Readonly<Record<string, { number: number; text: string }>> = {
  EPERM: { number: 1, text: "Operation not permitted" },
  ENOENT: { number: 2, text: "No such file or directory" },
  EIO: { number: 5, text: "Input/output error" },
  ENXIO: { number: 6, text: "No such device or address" },
  ENOMEM: { number: 12, text: "Cannot allocate memory" },
  EACCES: { number: 13, text: "Permission denied" },
  ENOTDIR: { number: 20, text: "Not a directory" },
  EISDIR: { number: 21, text: "Is a directory" },
  EINVAL: { number: 22, text: "Invalid argument" },
  EMFILE: { number: 24, text: "Too many open files" },
  ENAMETOOLONG: { number: 36, text: "File name too long" },
  ELOOP: { number: 40, text: "Too many levels of symbolic links" },
};

/** A failed file operation as the model is told of it, `what` saying which; any other error is thrown on. */
export function fileFailure(what: string, path: string, error: unknown): BrigError {
  if (!isBrigError(error) || !error.code.startsWith("file.")) throw error;
  return new BrigError(`${what}: ${reasonOf(path, error)}`, {
    code: error.code,
    hint: error.hint,
    cause: error,
  });
}

function reasonOf(path: string, error: BrigError): string {
  if (path.includes("\0")) return "file name contained an unexpected NUL byte";
  const known = texts[errnoOf(error)];
  return known === undefined ? error.message : `${known.text} (os error ${known.number})`;
}

function errnoOf({ cause }: BrigError): string {
  return cause instanceof Error && "code" in cause ? String(cause.code) : "";
}
