import { readdirSync, readFileSync, readlinkSync } from "node:fs";
import type { BytePath } from "../git/byte-paths.js";

/** The kernel's function in which a process waits that opens a FIFO nobody has opened at its other end. */
const WAITS_FOR_PARTNER = "wait_for_partner";

/**
 * The files that processes of this machine have open, as far as the user may know. Processes in containers are left out: they
 * have other numbers for their processes.
 */
export class HostProcesses {
  readonly #proc: string;

  constructor(procDirectory = "/proc") {
    this.#proc = procDirectory;
  }

  /** The working directories of the processes that have each socket: its relative name was looked up there, unless they have moved. */
  directoriesOfSockets(): Map<string, BytePath[]> {
    const directories = new Map<string, BytePath[]>();
    for (const process of this.#own()) {
      const directory = this.#link(`${process}/cwd`);
      if (directory === null) continue;
      for (const opened of this.#opened(process)) {
        const id = /^socket:\[([0-9]+)\]$/.exec(opened)?.[1];
        if (id !== undefined) directories.set(id, [...(directories.get(id) ?? []), directory]);
      }
    }
    return directories;
  }

  /** Returns those of the given paths that a process has open. */
  openedOf(paths: readonly BytePath[]): BytePath[] {
    const opened = new Set(this.#own().flatMap((process) => this.#opened(process)));
    return paths.filter((path) => opened.has(path));
  }

  /** Whether a process waits for the other end of some FIFO. The kernel tells nobody which FIFO it is. */
  get waitsForPartner(): boolean {
    return this.#own().some((process) => this.#read(`${process}/wchan`) === WAITS_FOR_PARTNER);
  }

  #own(): string[] {
    const namespace = this.#link("self/ns/pid");
    const processes = this.#list("").filter((name) => /^[0-9]+$/.test(name));
    return processes.filter((process) => this.#link(`${process}/ns/pid`) === namespace);
  }

  #opened(process: string): BytePath[] {
    return this.#list(`${process}/fd`).flatMap((fd) => this.#link(`${process}/fd/${fd}`) ?? []);
  }

  #list(directory: string): string[] {
    return orNull(() => readdirSync(`${this.#proc}/${directory}`)) ?? [];
  }

  #link(file: string): BytePath | null {
    return orNull(() => readlinkSync(`${this.#proc}/${file}`, { encoding: "latin1" }));
  }

  #read(file: string): string | null {
    return orNull(() => readFileSync(`${this.#proc}/${file}`, "latin1").trim());
  }
}

/** Processes end meanwhile, and others are not the user's. */
function orNull<T>(read: () => T): T | null {
  try {
    return read();
  } catch {
    return null;
  }
}
