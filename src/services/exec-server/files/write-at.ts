import type { Sandbox } from "../../../sandbox/index.js";
import { RpcError, RpcErrorCode } from "../wire/messages.js";

const TIMEOUT_MS = 30_000;
const LARGEST_UNIT_BYTES = 1024 * 1024;

/**
 * Writes into an existing file at an offset. Uses the image's `dd`, because the runner can only replace whole
 * files. `dd` counts the offset in units of a chosen size, which here is the largest power of two that
 * divides the offset.
 */
export async function writeAt(
  sandbox: Pick<Sandbox, "exec">,
  path: string,
  { offset, data }: { offset: number; data: Buffer },
): Promise<void> {
  let unit = LARGEST_UNIT_BYTES;
  while (offset % unit !== 0) unit /= 2;
  const { exitCode, stderr, timedOut } = await sandbox.exec(
    ["dd", `of=${path}`, `seek=${offset / unit}`, "ibs=65536", `obs=${unit}`, "conv=notrunc"],
    { stdin: data, env: { LC_ALL: "C" }, timeoutMs: TIMEOUT_MS, maxOutputBytes: 4096 },
  );
  if (exitCode === 0) return;
  throw new RpcError(reasonOf({ exitCode, stderr, timedOut }), { code: RpcErrorCode.internal });
}

function reasonOf({
  exitCode,
  stderr,
  timedOut,
}: {
  exitCode: number;
  stderr: string;
  timedOut: boolean;
}): string {
  if (timedOut) return `the write took longer than ${TIMEOUT_MS / 1000} seconds`;
  if (exitCode === 127)
    return "the image has no dd, which brig needs to write a file in blocks: choose an image with coreutils or busybox";
  return stderr.split("\n").find((line) => line.startsWith("dd: ")) ?? `dd ended with ${exitCode}`;
}
