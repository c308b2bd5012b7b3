import { BrigError, type ErrorCode } from "../errors.js";

const failed = 1;
const badUsage = 2;
export const ownFailure = 125;
const interrupted = 130;

/** A new error code without an exit status is a type error. */
const statusOfCode: Record<ErrorCode, number> = {
  aborted: interrupted,
  "agents.budget": failed,
  "branch.refused": failed,
  "config.invalid": badUsage,
  "engine.failed": ownFailure,
  "engine.too-old": ownFailure,
  "engine.unreachable": ownFailure,
  "exec.bad-cwd": badUsage,
  "exec.invalid": badUsage,
  "file.exists": failed,
  "file.failed": failed,
  "file.is-directory": failed,
  "file.not-directory": failed,
  "file.not-found": failed,
  "file.not-permitted": failed,
  "file.not-regular": failed,
  "file.read-only": failed,
  "file.symlink": failed,
  "file.too-large": failed,
  "image.build-failed": ownFailure,
  "image.missing": ownFailure,
  "mcp.failed": failed,
  "mcp.start-failed": failed,
  "mcp.timed-out": failed,
  "model.auth": badUsage,
  "model.context-window": failed,
  "model.failed": failed,
  "model.quota": failed,
  "model.rate-limit": failed,
  "model.script": failed,
  "model.unreachable": failed,
  "policy.invalid": badUsage,
  "policy.not-enforced": ownFailure,
  "protocol.invalid": ownFailure,
  "queue.unreachable": ownFailure,
  "sandbox.canary-sent": ownFailure,
  "sandbox.gone": ownFailure,
  "sandbox.port-failed": failed,
  "sandbox.port-in-use": failed,
  "sandbox.unknown": badUsage,
  "serve.busy": failed,
  "serve.failed": failed,
  "serve.quota": badUsage,
  "serve.refused": badUsage,
  "serve.unknown": badUsage,
  "serve.unreachable": failed,
  "session.busy": failed,
  "session.invalid": badUsage,
  "session.unknown": badUsage,
  "setup.failed": ownFailure,
  "snapshot.failed": failed,
  "snapshot.invalid": badUsage,
  "snapshot.unknown": badUsage,
  "store.failed": ownFailure,
  "task.invalid": badUsage,
  "tool.failed": failed,
  "tool.invalid-input": badUsage,
  "tool.unknown": badUsage,
  "turn.timed-out": failed,
  "usage.invalid": badUsage,
  "workspace.conflict": failed,
  "workspace.invalid": badUsage,
};

/** Any error that is not a BrigError is a bug in brig. */
export function exitStatusOf(error: unknown): number {
  return error instanceof BrigError ? statusOfCode[error.code] : ownFailure;
}
