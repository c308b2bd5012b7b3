import {
  array,
  boolean,
  nullable,
  nullish,
  number,
  object,
  positiveInteger,
  record,
  type Shape,
  type Shaped,
  string,
  stringLike,
} from "../../../lib/json/json-shape.js";

/** The first frame of a connection: the command. */
export const commandShape = object({
  argv: array(string),
  /** Null: where commands of the sandbox start. */
  cwd: nullable(string),
  env: record(string),
  timeoutMs: nullable(number),
  pty: nullable(object({ rows: positiveInteger, cols: positiveInteger })),
  takesInput: boolean,
  /** Keep the output, and say with the end what it was. */
  keepsOutput: boolean,
  /** By which the client finds it again if the owner is killed; nothing if it does not. */
  id: nullish(stringLike(/^[0-9a-z-]{1,64}$/)),
  /** Start it only: it goes on when the connection has ended, which says what its id is. */
  isDetached: boolean,
});
export type ConnectedCommand = Shaped<typeof commandShape>;

const count: Shape<number> = (value, path) => (value === 0 ? 0 : positiveInteger(value, path));

/** The first frame in place of that, of a client whose connection has ended with the owner before: what it has, and goes on after. */
export const resumeShape = object({ id: string, stdout: count, stderr: count });
export type ResumedConnection = Shaped<typeof resumeShape>;

/**
 * What the owner says of a command that was there before the connection: where its output goes on, and how much input it has had, or null once it
 * takes none any more.
 */
export const begunShape = object({ id: string, stdout: count, stderr: count, input: nullable(count) });

export const sizeShape = object({ rows: positiveInteger, cols: positiveInteger });

/** What `brig up` asks its owner for. */
export const upRequestShape = object({
  name: nullable(string),
  argv: array(string),
  /** The variables of `--env` and `--env-file`, which only the client can read: they may be in a pipe. */
  env: record(string),
  cwd: string,
  /** Those of the client. */
  variables: record(string),
});
export type UpRequest = Shaped<typeof upRequestShape>;

/** An error as it is sent to the client, for which it is the same error. */
export const sentErrorShape = object({
  code: string,
  message: string,
  hint: nullish(string),
  reason: nullish(string),
  disk: nullish((value: unknown) => value),
});
