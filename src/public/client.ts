// brigbox/client: the client of `brig serve`. Importing it loads no code of sandboxes.
export { BrigError, isBrigError } from "../errors.js";
export type {
  BrigClientOptions,
  Episode,
  EpisodeOptions,
  RemoteCallOptions,
  RemoteDiffOptions,
  RemoteEgress,
  RemoteExit,
  RemoteFiles,
  RemoteProcess,
  RemoteProcessRecord,
  RemoteProof,
  RemoteReceipt,
  RemoteSandbox,
  RemoteSandboxOptions,
  RemoteSandboxRecord,
  RemoteSnapshot,
  RemoteStreamOptions,
  ServedTask,
  ServiceHealth,
} from "../services/index.js";
export { BrigClient } from "../services/index.js";
