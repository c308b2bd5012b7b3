import {
  array,
  boolean,
  nullable,
  nullish,
  number,
  object,
  oneOf,
  positiveInteger,
  readOrNull,
  record,
  type Shape,
  type Shaped,
  string,
  stringLike,
} from "../../../lib/json/json-shape.js";
import type { CopiedChanges } from "../../../sandbox/index.js";

/** The first frame of a connection: the command. */
export const commandShape = object({
  argv: array(string),
  /** Null: where commands of the sandbox start. */
  cwd: nullable(string),
  /** Null removes a variable of the sandbox. */
  env: record(nullable(string)),
  timeoutMs: nullable(number),
  pty: nullable(object({ rows: positiveInteger, cols: positiveInteger })),
  takesInput: boolean,
  /** Keep the output, and say with the end what it was. */
  keepsOutput: boolean,
  /** By which the client finds it again if the owner is killed; nothing if it does not. */
  id: nullish(stringLike(/^[0-9a-z-]{1,64}$/)),
  /** Start it only: it goes on when the connection has ended, which says what its id is. */
  isDetached: boolean,
  /** One pipe for both outputs. Default: no. */
  mergeOutput: nullish(boolean),
  /** Nothing outlives the main process. Default: what it leaves runs on. */
  endsTree: nullish(boolean),
  /** The model's call that the command is for. Default: none. */
  callId: nullish(string),
});
type CommandFields = Shaped<typeof commandShape>;
type UsuallyMissing = "mergeOutput" | "endsTree" | "callId";
export type ConnectedCommand = Omit<CommandFields, UsuallyMissing> &
  Partial<Pick<CommandFields, UsuallyMissing>>;

const count: Shape<number> = (value, path) => (value === 0 ? 0 : positiveInteger(value, path));

/** The first frame in place of that, of a client whose connection has ended with the owner before: what it has, and goes on after. */
export const resumeShape = object({ id: string, stdout: count, stderr: count });
export type ResumedConnection = Shaped<typeof resumeShape>;

/** What the owner says of a command that was there before the connection: where its output goes on. */
export interface BegunCommand extends ResumedConnection {
  /** How much input it has had; null once it takes none any more. */
  input: number | null;
}

export const sizeShape = object({ rows: positiveInteger, cols: positiveInteger });

const copiedShape = object({
  ...{ files: number, bytes: number, totalFiles: number, totalBytes: number },
  phase: nullish(oneOf("waiting", "placing")),
});

/** What the owner says of a copy under way. Null for what is nothing of the kind. */
export function readCopied(sent: unknown): CopiedChanges | null {
  const copied = readOrNull(copiedShape, sent);
  return copied && { ...copied, phase: copied.phase ?? undefined };
}

/** What `brig up` asks its owner for. */
export const upRequestShape = object({
  name: nullable(string),
  argv: array(string),
  /** The variables of `--env` and `--env-file`, which only the client can read: they may be in a pipe. */
  env: record(string),
  cwd: string,
  /** Those of the client. */
  variables: record(string),
  /** Whether it is the fork of a sandbox with the same options, whose ports stay its own. Default: no. */
  isFork: nullish(boolean),
});
type UpFields = Shaped<typeof upRequestShape>;
export type UpRequest = Omit<UpFields, "isFork"> & Partial<Pick<UpFields, "isFork">>;

/** An error as it is sent to the client, for which it is the same error. */
export const sentErrorShape = object({
  code: string,
  message: string,
  hint: nullish(string),
  errno: nullish(string),
  reason: nullish(string),
  disk: nullish((value: unknown) => value),
});

/** How many zeros come before the bytes of a file that are sent, which are not sent. */
export const HOLE_HEADER = "brig-hole-bytes";
/** The content type of an answer in lines of JSON. It is set as a header of its own, so that an error that comes later finds it. */
export const LINES_TYPE = "application/x-ndjson";
/** The content type of the entries of a directory, which are frames. */
export const LISTING_TYPE = "application/x-brig-listing";
/** The most of a file that is sent at once in either direction. */
export const MAX_FILE_BYTES = 256 * 1024 * 1024;

/** What a model is told of a sandbox that it works in, and what is recorded of it. */
export const placeShape = object({
  id: string,
  image: string,
  /** A mode, or the path of a policy file as it was written. */
  mode: string,
  policyFile: string,
  network: string,
  workspace: nullable(string),
  workingDirectory: string,
  /** Directories besides the workspace that commands may write to. */
  writableRoots: array(string),
  /** Null without a copy-on-write workspace. */
  snapshotId: nullable(string),
  proof: (value: unknown) => value,
  /** Its secrets, which the tools of a model hide in what they return. */
  secrets: array(string),
  /** How many attempts to reach something there were so far. */
  egressCount: number,
});
export type SandboxPlaceAnswer = Shaped<typeof placeShape>;
