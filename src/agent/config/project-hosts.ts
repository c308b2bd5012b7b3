import { realpath } from "node:fs/promises";
import { join } from "node:path";
import { z } from "zod";
import { BrigError } from "../../errors.js";
import { readTextFile } from "../../lib/bounded-file.js";
import { acquireLock } from "../../lib/file-lock.js";
import { writeDurably } from "../../lib/files/durable-file.js";
import { makeDirectory } from "../../lib/files/make-directory.js";
import { normalPattern } from "../../sandbox/index.js";

const FILE = "allowed-hosts.json";
const MAX_BYTES = 1024 * 1024;
/** A writer needs milliseconds. */
const LOCK_WAIT_MS = 10_000;
const MAX_HOSTS = 200;

/** Accepts only what an answer can allow: one host at one port, in its normal spelling. */
const host = z
  .string()
  .refine(isOneHost, { error: "must be one host with its port, such as api.example.com:443" });
const fileSchema = z.strictObject({
  version: z.literal(1),
  projects: z.record(z.string().startsWith("/"), z.array(host).max(MAX_HOSTS)),
});
type Stored = z.infer<typeof fileSchema>;

/**
 * The hosts that the user always allows in one directory, besides those of the allow-list. They are kept in `$BRIG_HOME`, where no
 * sandbox can write. Errors: `config.invalid` for a file that is not as brig writes it, and for one that cannot be written.
 */
export class ProjectHosts {
  /** File in which the hosts are kept. */
  readonly file: string;
  readonly #home: string;
  readonly #directory: string;

  constructor({ brigHome, directory }: { brigHome: string; directory: string }) {
    this.#home = brigHome;
    this.file = join(brigHome, FILE);
    this.#directory = directory;
  }

  async read(): Promise<readonly string[]> {
    const { projects } = await this.#stored();
    const key = await this.#key();
    return Object.hasOwn(projects, key) ? (projects[key] ?? []) : [];
  }

  async add(added: string): Promise<void> {
    if (!isOneHost(added)) throw this.#damaged(`${JSON.stringify(added)} is not one host with its port`);
    await this.#change((hosts) => (hosts.includes(added) ? hosts : [...hosts, added]));
  }

  async remove(removed: string): Promise<void> {
    await this.#change((hosts) => hosts.filter((one) => one !== removed));
  }

  /** One process at a time reads, changes and writes. */
  async #change(changed: (hosts: readonly string[]) => readonly string[]): Promise<void> {
    await makeDirectory(this.#home, { mode: 0o700 });
    const outcome = await acquireLock(this.file, { waitMs: LOCK_WAIT_MS });
    if (outcome.kind === "busy") throw this.#damaged("is in use by another process");
    using _ = outcome.lock;
    const { projects } = await this.#stored();
    const key = await this.#key();
    const hosts = changed(Object.hasOwn(projects, key) ? (projects[key] ?? []) : []);
    if (hosts.length > MAX_HOSTS) throw this.#damaged(`has ${MAX_HOSTS} hosts for this directory already`);
    const others = Object.entries(projects).filter(([project]) => project !== key);
    const entries = hosts.length === 0 ? others : [...others, [key, hosts] as const];
    const stored = { version: 1, projects: Object.fromEntries(entries) };
    await writeDurably(this.file, `${JSON.stringify(stored, null, 2)}\n`);
  }

  /** Key of the directory. The same directory by another path is the same project. */
  async #key(): Promise<string> {
    return await realpath(this.#directory);
  }

  async #stored(): Promise<Stored> {
    const read = await readTextFile(this.file, MAX_BYTES);
    if (read.kind === "missing") return { version: 1, projects: {} };
    if (read.kind === "unreadable") throw this.#damaged(read.reason, read.cause);
    const parsed = fileSchema.safeParse(jsonOf(read.text));
    if (parsed.success) return parsed.data;
    throw this.#damaged(`is not as brig writes it:\n${z.prettifyError(parsed.error)}`, parsed.error);
  }

  #damaged(reason: string, cause?: unknown): BrigError {
    return new BrigError(`the file of hosts that are always allowed, ${this.file}, ${reason}`, {
      code: "config.invalid",
      hint: "repair it, or remove it: brig then asks about these hosts again",
      cause,
    });
  }
}

/** Undefined, which the schema refuses, for what is no JSON. */
function jsonOf(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

function isOneHost(text: string): boolean {
  const pattern = normalPattern(text);
  const isWide = /^[@*]/.test(text) || text.includes("/");
  return pattern.kind === "parsed" && pattern.text === text && !isWide && /:\d+$/.test(text);
}
