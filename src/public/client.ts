// brigbox/client: the client of `brig serve`. Importing it loads no code of sandboxes.
export { BrigError, isBrigError } from "../errors.js";
export type {
  BrigClientOptions,
  Episode,
  EpisodeOptions,
  RemoteCallOptions,
  RemoteExit,
  RemoteFiles,
  RemoteSandbox,
  RemoteSandboxOptions,
  RemoteSandboxRecord,
  RemoteStreamOptions,
  ServedTask,
  ServiceHealth,
} from "../services/index.js";
export { BrigClient } from "../services/index.js";
