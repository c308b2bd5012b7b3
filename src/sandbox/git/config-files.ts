import { dirname } from "node:path";
import { type BytePath, readSmallFile, toBytePath } from "./byte-paths.js";
import { cannotProtect, type ProtectedSet } from "./protected-set.js";
import {
  type ConfigPath,
  configOf,
  type RepositoryConfig,
  readRepositoryConfig,
} from "./repository-config.js";
import type { UserGitConfig } from "./user-config.js";

const CONFIG_MAX_BYTES = 1024 * 1024;
/** Far more than the ten levels of includes that git itself follows. */
const MAX_FILES = 1000;

/** Reads configuration of git, and protects what it includes. */
export class ConfigFiles {
  readonly #found: ProtectedSet;
  readonly #home: BytePath | null;

  constructor(found: ProtectedSet, home: BytePath | null) {
    this.#found = found;
    this.#home = home;
  }

  /** The file, if it exists, and all that it includes. */
  read(file: BytePath): RepositoryConfig[] {
    const configs: RepositoryConfig[] = [];
    const open = [{ path: file, from: file }];
    const known = new Set([file]);
    for (let next = open.pop(); next !== undefined; next = open.pop()) {
      const bytes = this.#readFile(next.path, next.from);
      if (bytes === null) continue;
      if (known.size > MAX_FILES) throw cannotProtect(file, "it includes more files than git would follow");
      const config = readRepositoryConfig(bytes, { directory: dirname(next.path), home: this.#home });
      configs.push(config);
      for (const { kind, path } of config.paths) {
        if (kind !== "include" || known.has(path)) continue;
        known.add(path);
        open.push({ path, from: next.path });
      }
    }
    return configs;
  }

  /**
   * The paths that configuration for every repository names. Only a value that looks like a path counts as one there: a word
   * such as "log" or "vim" would else keep every file of that name from being changed.
   */
  userPaths({ files, settings }: UserGitConfig): ConfigPath[] {
    const inFiles = files.flatMap((file) => this.read(toBytePath(file)));
    const inVariables = configOf(settings, { directory: "/", home: this.#home });
    return [...inFiles, inVariables]
      .flatMap(({ paths }) => paths)
      .filter(({ kind, path }) => kind !== "argument" || path.includes("/") || /\.[0-9A-Za-z]+$/.test(path));
  }

  #readFile(path: BytePath, from: BytePath): Buffer | null {
    const target = this.#found.follow({ path, from, whenAbsent: "protect", isFile: true });
    if (target === null) return null;
    const bytes = this.#found.ifReadable(target, () => readSmallFile(target, CONFIG_MAX_BYTES));
    if (typeof bytes !== "string") return bytes;
    // Many name a file such as /dev/null where there is to be no configuration.
    if (bytes === "irregular" && !this.#found.isInWritable(target)) return null;
    throw cannotProtect(from, "it is not a small regular file, or does not lead to one");
  }
}
