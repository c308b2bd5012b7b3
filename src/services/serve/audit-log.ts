import { constants } from "node:fs";
import { type FileHandle, open, stat } from "node:fs/promises";
import type { IncomingMessage, ServerResponse } from "node:http";
import type { Duplex } from "node:stream";
import { BrigError } from "../../errors.js";
import { systemReason } from "../../lib/errno.js";

/** What is known of a request besides when it came, from where, for what path, and how it ended. */
export interface AuditFacts {
  client?: string | undefined;
  /** What is asked for, as the description of the service calls it. */
  call?: string | undefined;
  sandbox?: string | undefined;
  /** Sandboxes and episodes that it has made. */
  made?: readonly string[] | undefined;
  image?: string | undefined;
  mode?: string | undefined;
  network?: string | undefined;
  task?: string | undefined;
  /** The path of a file. */
  file?: string | undefined;
  argv?: readonly string[] | undefined;
}

/** Lines that wait to be written. With more, something is wrong with the disk. */
const MAX_WAITING_BYTES = 4 * 1024 * 1024;
/** How often it is looked whether the file was moved away. */
const LOOK_EVERY_MS = 1000;
const MAX_PATH_CHARS = 1024;
const MAX_FACT_CHARS = 512;

/**
 * A file to which a line of JSON is appended for each request. A file that was moved away is replaced by a new one. What cannot be
 * written is counted and said once; the service goes on.
 */
export class AuditLog implements AsyncDisposable {
  readonly #path: string;
  readonly #onWarning: (error: unknown) => void;
  readonly #facts = new WeakMap<IncomingMessage, AuditFacts>();
  #file: FileHandle;
  #waiting: string[] = [];
  #waitingBytes = 0;
  #lostCount = 0;
  #isFailing = false;
  /** Whether a line was perhaps not written to its end. */
  #isCut = false;
  #lookedAt = performance.now();
  /** Why there is no file at the path since it was looked there last; null if there is one. */
  #unopened: unknown = null;
  #writing: Promise<void> | null = null;

  private constructor(path: string, file: FileHandle, onWarning: (error: unknown) => void) {
    this.#path = path;
    this.#file = file;
    this.#onWarning = onWarning;
  }

  /** Error: `usage.invalid` for what is no file that can be written. */
  static async open(path: string, onWarning: (error: unknown) => void): Promise<AuditLog> {
    try {
      return new AuditLog(path, await openFile(path), onWarning);
    } catch (cause) {
      throw new BrigError(`the audit log ${JSON.stringify(path)} cannot be written: ${systemReason(cause)}`, {
        code: "usage.invalid",
        hint: "name a file in a directory that can be written, which is no link",
        cause,
      });
    }
  }

  /** How many lines could not be written. */
  get lostCount(): number {
    return this.#lostCount;
  }

  /** Writes a line when the answer is sent, or the client has gone. */
  watch(incoming: IncomingMessage, outgoing: ServerResponse): void {
    const write = this.#begin(incoming);
    outgoing.once("close", () => write(outgoing.headersSent ? outgoing.statusCode : null));
  }

  /** The same for a connection that is to become another one: its line is written when it ends. */
  watchUpgrade(incoming: IncomingMessage, socket: Duplex): { answered(status: number): void } {
    const write = this.#begin(incoming);
    let status: number | null = null;
    socket.once("close", () => write(status));
    return {
      answered(given) {
        status = given;
      },
    };
  }

  note(incoming: IncomingMessage, facts: AuditFacts): void {
    const known = this.#facts.get(incoming);
    if (known !== undefined) Object.assign(known, facts);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    while (this.#writing !== null) await this.#writing;
    await this.#file.close();
  }

  #begin(incoming: IncomingMessage): (status: number | null) => void {
    const facts: AuditFacts = {};
    this.#facts.set(incoming, facts);
    const { method, url = "", socket } = incoming;
    const [time, begun, address] = [new Date(), performance.now(), socket.remoteAddress ?? "local"];
    return (status) => {
      const { client = null, argv, ...others } = facts;
      const short = Object.entries(others).map(([name, value]) => [name, shortened(value)]);
      this.#append({
        ...{ time: time.toISOString(), client, address, method },
        path: url.split("?", 1).join().slice(0, MAX_PATH_CHARS),
        ...Object.fromEntries(short),
        ...(argv !== undefined && { argv: maskedArguments(argv) }),
        ...{ status, durationMs: Math.round(performance.now() - begun) },
      });
    };
  }

  #append(entry: object): void {
    const line = `${JSON.stringify(entry)}\n`;
    if (this.#waitingBytes + line.length > MAX_WAITING_BYTES) {
      this.#lostCount++;
      this.#warn(new Error("lines come faster than they can be written"));
      return;
    }
    this.#waiting.push(line);
    this.#waitingBytes += line.length;
    this.#writing ??= this.#writeAll().finally(() => {
      this.#writing = null;
    });
  }

  async #writeAll(): Promise<void> {
    while (this.#waiting.length > 0) {
      const lines = this.#waiting.splice(0);
      this.#waitingBytes = 0;
      try {
        await this.#lookAtFile();
        await this.#file.appendFile(`${this.#isCut ? "\n" : ""}${lines.join("")}`);
        this.#isCut = false;
        this.#isFailing = false;
      } catch (error) {
        this.#isCut = true;
        this.#lostCount += lines.length;
        this.#warn(error);
      }
    }
  }

  async #lookAtFile(): Promise<void> {
    const now = performance.now();
    if (now - this.#lookedAt < LOOK_EVERY_MS) {
      if (this.#unopened !== null) throw this.#unopened;
      return;
    }
    this.#lookedAt = now;
    const [own, there] = await Promise.all([this.#file.stat(), stat(this.#path).catch(() => null)]);
    if (there !== null && there.ino === own.ino && there.dev === own.dev) return;
    const file = await openFile(this.#path).catch((error: unknown) => {
      this.#unopened = error;
      throw error;
    });
    this.#unopened = null;
    await this.#file.close();
    this.#file = file;
    this.#isCut = false;
  }

  #warn(cause: unknown): void {
    if (this.#isFailing) return;
    this.#isFailing = true;
    this.#onWarning(
      new BrigError(`the audit log has gaps from now on: ${systemReason(cause)}`, {
        code: "store.failed",
        hint: `make room for ${this.#path}; brig_audit_lost_total in /metrics says how many lines are missing`,
        cause,
      }),
    );
  }
}

async function openFile(path: string): Promise<FileHandle> {
  const { O_WRONLY, O_APPEND, O_CREAT, O_NOFOLLOW, O_NONBLOCK } = constants;
  const file = await open(path, O_WRONLY | O_APPEND | O_CREAT | O_NOFOLLOW | O_NONBLOCK, 0o600);
  try {
    if (!(await file.stat()).isFile()) throw new Error("it is no regular file");
    await file.chmod(0o600);
    return file;
  } catch (error) {
    await file.close();
    throw error;
  }
}

function shortened(value: string | readonly string[] | undefined): unknown {
  return typeof value === "string" ? value.slice(0, MAX_FACT_CHARS) : value;
}

const MAX_ARGUMENTS = 32;
const MAX_ARGUMENT_CHARS = 256;
const secretName = String.raw`[\w-]{0,64}(?:token|secret|passw(?:or)?d|passphrase|api[-_]?key|access[-_]?key|authorization|credential|cookie)[\w-]{0,64}`;
const named = new RegExp(
  String.raw`(${secretName}["']?\s{0,4}[=:]\s{0,4}["']?)(?:(?:bearer|basic)\s+)?[^\s"']+`,
  "gi",
);
const option = new RegExp(`^--?${secretName}$`, "i");
const following = new RegExp(String.raw`(--?${secretName}\s{1,4})[^\s"']+`, "gi");

/** The arguments of a command, shortened, without what follows names by which secrets usually go. */
export function maskedArguments(argv: readonly string[]): string[] {
  const shown = argv.slice(0, MAX_ARGUMENTS).map((argument, index) => {
    if (index > 0 && option.test(argv[index - 1] ?? "")) return "***";
    const masked = argument
      .slice(0, MAX_ARGUMENT_CHARS)
      .replaceAll(named, "$1***")
      .replaceAll(following, "$1***")
      .replaceAll(/\bbearer\s+[^\s"']+/gi, "Bearer ***")
      .replaceAll(/(:\/\/)[^\s/@]+@/g, "$1***@");
    return argument.length > MAX_ARGUMENT_CHARS ? `${masked}…` : masked;
  });
  return argv.length > MAX_ARGUMENTS ? [...shown, `… ${argv.length - MAX_ARGUMENTS} more`] : shown;
}
