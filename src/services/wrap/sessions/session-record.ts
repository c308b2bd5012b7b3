import type { Shaped } from "../../../lib/json/json-shape.js";
import {
  anything,
  array,
  boolean,
  nullable,
  number,
  object,
  record,
  string,
} from "../../../lib/json/json-shape.js";

const VERSION = 1;

const shape = object({
  version: number,
  /** The known agent; null for another program. */
  agent: nullable(string),
  command: array(string),
  /** The directory that the session was started in, which relative paths of `flags` refer to. */
  directory: string,
  flags: record(anything),
  /** Whether the agent's configuration is in its home already. */
  isConfigured: boolean,
  createdAt: string,
  usedAt: string,
  /** The last exit code of the command; null until the command has ended for the first time. */
  exitCode: nullable(number),
});

/** The data that brig stores about a named session. */
export type SessionRecord = Omit<Shaped<typeof shape>, "version">;

export function writeRecord(record: SessionRecord): string {
  return `${JSON.stringify({ version: VERSION, ...record }, null, 2)}\n`;
}

/** Error: `SyntaxError` or `ShapeError` for a text that is not a record of this version. */
export function parseRecord(text: string): SessionRecord {
  const { version, ...session } = shape(JSON.parse(text), "");
  if (version !== VERSION) throw new SyntaxError(`version ${version} is not known to this version of brig`);
  return session;
}
