// brigbox/client: the client of `brig serve`. Importing it loads no code of sandboxes.
export { BrigError, isBrigError } from "../errors.js";
export type {
  BrigClientOptions,
  Episode,
  EpisodeOptions,
  RemoteCallOptions,
  RemoteDiffOptions,
  RemoteExit,
  RemoteFiles,
  RemoteProcess,
  RemoteProcessRecord,
  RemoteSandbox,
  RemoteSandboxOptions,
  RemoteSandboxRecord,
  RemoteSnapshot,
  RemoteStreamOptions,
  ServedTask,
  ServiceHealth,
} from "../services/index.js";
export { BrigClient } from "../services/index.js";
