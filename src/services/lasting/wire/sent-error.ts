import { BrigError, type BrigErrorOptions, type ErrorCode, type GoneReason } from "../../../errors.js";
import { readOrNull, type Shaped } from "../../../lib/json/json-shape.js";
import { sentErrorShape } from "./messages.js";

export type SentError = Shaped<typeof sentErrorShape>;

/** An error that is not one of brig's own is a fault of the owner. The client is the same user, so that it may quote anything. */
export function asSentError(error: unknown): SentError {
  if (!(error instanceof BrigError))
    return {
      code: "serve.failed",
      message: `the process that keeps the sandboxes has a fault: ${error instanceof Error ? error.message : error}`,
      hint: "its log is service.log in $BRIG_HOME",
      errno: undefined,
      reason: undefined,
      disk: undefined,
    };
  const { code, message, hint, errno, reason, disk } = error;
  return { code, message, hint, errno, reason, disk };
}

/** The error that was sent, or one that says that it is not understood. */
export function asBrigError(sent: unknown): BrigError {
  const read = readOrNull(sentErrorShape, sent);
  if (read === null) return notUnderstood();
  const { code, message, hint, errno, reason, disk } = read;
  return new BrigError(message, {
    // Another version may have further codes; programs that test for a code do not know them either.
    code: code as ErrorCode,
    hint: hint ?? undefined,
    errno: errno ?? undefined,
    reason: (reason ?? undefined) as GoneReason | undefined,
    disk: (disk ?? undefined) as BrigErrorOptions["disk"],
  });
}

export function notUnderstood(): BrigError {
  return new BrigError(
    "the process that keeps the sandboxes gave an answer that this brig does not understand",
    {
      code: "serve.failed",
      hint: "it may be of another version: end its sandboxes with brig rm, and start them again",
    },
  );
}
