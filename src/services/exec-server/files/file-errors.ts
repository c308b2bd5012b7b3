import type { OsError } from "../../../tools/index.js";
import { describeOsError, isFileError, osErrors, osErrorText } from "../../../tools/index.js";
import { RpcError, RpcErrorCode } from "../wire/messages.js";

/** Runs a file operation, and gives its errors the codes and texts of Codex's own server. */
export async function withFile<Result>(path: string, operation: () => Promise<Result>): Promise<Result> {
  try {
    return await operation();
  } catch (cause) {
    if (!isFileError(cause)) throw cause;
    if (cause.code === "file.not-regular" || cause.code === "file.is-directory") throw notAFile(path, cause);
    throw new RpcError(osErrorText(cause), { code: codeOf(cause.errno), cause });
  }
}

export function missing(): RpcError {
  return osFailure(osErrors.ENOENT, RpcErrorCode.notFound);
}

export function notAFile(path: string, cause?: unknown): RpcError {
  return new RpcError(`path \`${path}\` is not a file`, { code: RpcErrorCode.invalidRequest, cause });
}

export function osFailure(error: OsError, code: number): RpcError {
  return new RpcError(describeOsError(error), { code });
}

function codeOf(errno: string | undefined): number {
  if (errno === "ENOENT") return RpcErrorCode.notFound;
  return errno === "EACCES" || errno === "EPERM" ? RpcErrorCode.invalidRequest : RpcErrorCode.internal;
}
