import { BrigError } from "../../errors.js";

/** One line of /proc/PID/mountinfo. */
export interface MountEntry {
  /** "major:minor". */
  device: string;
  /** The directory of the file system that is mounted. */
  root: string;
  path: string;
  options: string[];
  fileSystem: string;
  superOptions: string[];
}

const MOUNTINFO_MAX_BYTES = 4 * 1024 * 1024;
const MOUNTINFO_MAX_LINES = 20_000;
const FIELDS_BEFORE_OPTIONAL = 6;

/** Parses a mount table. Error: `protocol.invalid` for a malformed line. */
export function parseMountinfo(table: Uint8Array): MountEntry[] {
  if (table.byteLength > MOUNTINFO_MAX_BYTES) throw malformed(`it has ${table.byteLength} bytes`);
  // Latin-1 keeps every byte until the octal escapes are decoded.
  const lines = Buffer.from(table).toString("latin1").split("\n");
  if (lines.at(-1) === "") lines.pop();
  if (lines.length > MOUNTINFO_MAX_LINES) throw malformed(`it has ${lines.length} lines`);
  return lines.map((line, index) => parseLine(line) ?? fail(index + 1));
}

/** The same file system may be writable through another mount. */
export function isReadOnly(entry: MountEntry): boolean {
  return entry.options.includes("ro") || entry.superOptions.includes("ro");
}

function parseLine(line: string): MountEntry | null {
  const fields = line.split(" ");
  const separator = fields.indexOf("-", FIELDS_BEFORE_OPTIONAL);
  const [id, parentId, device, root, path, options] = fields;
  const [fileSystem, , superOptions] = fields.slice(separator + 1);
  if (separator === -1 || fields.length !== separator + 4) return null;
  if (!isNumber(id) || !isNumber(parentId) || !/^[0-9]+:[0-9]+$/.test(device ?? "")) return null;
  const mountedAt = unescapePath(path);
  if (!mountedAt.startsWith("/") || options === undefined || superOptions === undefined) return null;
  return {
    device: device ?? "",
    root: unescapePath(root),
    path: mountedAt,
    options: options.split(","),
    fileSystem: fileSystem ?? "",
    superOptions: superOptions.split(",").map(unescapePath),
  };
}

function unescapePath(text: string | undefined): string {
  const bytes = (text ?? "").replace(/\\([0-3][0-7]{2})/g, (_, octal: string) =>
    String.fromCharCode(Number.parseInt(octal, 8)),
  );
  return Buffer.from(bytes, "latin1").toString("utf8");
}

function isNumber(text: string | undefined): boolean {
  return text !== undefined && /^[0-9]{1,10}$/.test(text);
}

function fail(line: number): never {
  throw malformed(`line ${line} cannot be read`);
}

function malformed(reason: string): BrigError {
  return new BrigError(`this is not a mount table: ${reason}`, { code: "protocol.invalid" });
}
