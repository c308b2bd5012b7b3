import { BrigError } from "../../../errors.js";

export interface ObjectStore {
  /** Name for messages. */
  readonly name: string;
  /** Puts a file under a name, whole or not at all. "present": there was one already, and it stays. */
  put(key: string, object: StoredFile): Promise<"stored" | "present">;
  /** Writes the object to a file, which must not exist. */
  get(key: string, file: string, limits: FetchLimits): Promise<"fetched" | "missing">;
  has(key: string, signal?: AbortSignal): Promise<boolean>;
  /** An object that is not there is none to remove. */
  remove(key: string): Promise<void>;
}

export interface StoredFile {
  path: string;
  sizeBytes: number;
  /** SHA-256 of its content in hex. */
  sha256: string;
  signal?: AbortSignal | undefined;
}

export interface FetchLimits {
  maxBytes: number;
  signal?: AbortSignal | undefined;
}

export function tooLarge(key: string, store: string): BrigError {
  return new BrigError(`${key} in ${store} is larger than brig accepts`, {
    code: "store.failed",
    hint: "let tasks declare smaller artifacts",
  });
}
