import { z } from "zod";
import { attemptResultSchema } from "../../../batch/index.js";
import type { UploadedBody } from "../http/uploaded-body.js";
import { egressSchema, proofSchema, receiptSchema } from "./account-schemas.js";
import {
  archiveSchema,
  fileChangeLineSchema,
  fileStatSchema,
  makeDirectorySchema,
  moveFileSchema,
  rangeHeadersSchema,
  statFileSchema,
  watchFilesSchema,
} from "./file-schemas.js";
import {
  overviewSchema,
  readOverviewSchema,
  readSandboxOverviewSchema,
  sandboxOverviewSchema,
} from "./overview-schemas.js";
import { pointListSchema, restoreSchema, takenPointSchema, undoneSchema } from "./point-schemas.js";
import {
  attachSchema,
  outputSchema,
  processListSchema,
  processSchema,
  readOutputSchema,
  resizeSchema,
  signalSchema,
  startProcessSchema,
  waitProcessSchema,
} from "./process-schemas.js";
import {
  createEpisodeSchema,
  createSandboxSchema,
  entryListSchema,
  episodeListSchema,
  episodeSchema,
  execLineSchema,
  execResultSchema,
  execSchema,
  execStreamSchema,
  healthSchema,
  listEntriesSchema,
  pollSchema,
  readFileSchema,
  removeFileSchema,
  sandboxListSchema,
  sandboxSchema,
  taskListSchema,
  writeFileSchema,
} from "./schemas.js";
import {
  createHeadersSchema,
  extendSchema,
  listSandboxesSchema,
  setNetworkSchema,
} from "./setting-schemas.js";
import {
  diffSchema,
  forkListSchema,
  forkSchema,
  readDiffSchema,
  snapshotListSchema,
  snapshotSchema,
  takeSnapshotSchema,
} from "./workspace-schemas.js";

/** One kind of request. The server, the client and the OpenAPI description are made from it. */
export interface Route {
  method: "GET" | "POST" | "PUT" | "DELETE";
  /** `{id}` and `{process}` stand for one part of the path each. */
  path: string;
  summary: string;
  /** Answered without a token. */
  isOpen?: true;
  /** Refused while the service ends: it starts something new. */
  begins?: true;
  /** A client that sees all sandboxes may ask it about those of others too. */
  isForAll?: true;
  /** It may wait for a process, which ends with the service: the service does not wait for its answer. */
  waitsForProcess?: true;
  query?: z.ZodObject;
  /** The headers that it takes, with names in small letters. */
  headers?: z.ZodObject;
  /** A stream is passed on as it comes, however long it is. */
  body?: z.ZodObject | "bytes" | "stream";
  /** With 101 the connection becomes a WebSocket. */
  answer: {
    status: number;
    body: z.ZodType | "bytes" | { bytes: string } | { line: z.ZodType } | { text: string } | null;
  };
}

const sandbox = "/v1/sandboxes/{id}";
const process = `${sandbox}/processes/{process}`;
const episode = "/v1/episodes/{id}";
const none = { status: 204, body: null };

/** The text format of Prometheus. */
export const METRICS_TYPE = "text/plain; version=0.0.4; charset=utf-8";

export const ARCHIVE_TYPE = "application/x-tar";

export const routes = {
  health: {
    method: "GET",
    path: "/health",
    summary: "Whether the service takes requests",
    isOpen: true,
    answer: { status: 200, body: healthSchema },
  },
  openapi: {
    method: "GET",
    path: "/openapi.json",
    summary: "This description",
    isOpen: true,
    answer: { status: 200, body: z.record(z.string(), z.unknown()) },
  },
  metrics: {
    method: "GET",
    path: "/metrics",
    summary: "Counters of the whole service, for Prometheus",
    answer: { status: 200, body: { text: METRICS_TYPE } },
  },
  readOverview: {
    method: "GET",
    path: "/v1/overview",
    summary: "What the page at / shows of the service, for people",
    query: readOverviewSchema,
    answer: { status: 200, body: overviewSchema },
  },
  readSandboxOverview: {
    method: "GET",
    path: "/v1/overview/{id}",
    summary: "What the page at / shows of one sandbox",
    query: readSandboxOverviewSchema,
    answer: { status: 200, body: sandboxOverviewSchema },
  },
  listTasks: {
    method: "GET",
    path: "/v1/tasks",
    summary: "The tasks that the service was started with",
    answer: { status: 200, body: taskListSchema },
  },
  createSandbox: {
    method: "POST",
    path: "/v1/sandboxes",
    summary: "Start a sandbox",
    begins: true,
    headers: createHeadersSchema,
    body: createSandboxSchema,
    answer: { status: 201, body: sandboxSchema },
  },
  listSandboxes: {
    method: "GET",
    path: "/v1/sandboxes",
    summary: "The client's own sandboxes, or those with some labels",
    query: listSandboxesSchema,
    answer: { status: 200, body: sandboxListSchema },
  },
  getSandbox: {
    method: "GET",
    path: sandbox,
    isForAll: true,
    summary: "One sandbox",
    answer: { status: 200, body: sandboxSchema },
  },
  deleteSandbox: {
    method: "DELETE",
    path: sandbox,
    isForAll: true,
    summary: "End everything in a sandbox and remove it",
    answer: none,
  },
  extendSandbox: {
    method: "POST",
    path: `${sandbox}/extend`,
    isForAll: true,
    summary: "Say anew when a sandbox expires",
    body: extendSchema,
    answer: { status: 200, body: sandboxSchema },
  },
  setNetwork: {
    method: "PUT",
    path: `${sandbox}/network`,
    summary: "Replace the list of hosts that a sandbox may reach, while it runs",
    body: setNetworkSchema,
    answer: { status: 200, body: sandboxSchema },
  },
  exec: {
    method: "POST",
    path: `${sandbox}/exec`,
    summary: "Run a command to its end. It is ended when the client disconnects",
    begins: true,
    body: execSchema,
    answer: { status: 200, body: execResultSchema },
  },
  execStream: {
    method: "POST",
    path: `${sandbox}/exec-stream`,
    summary: "Run a command, and get its output as it comes, one JSON object per line",
    begins: true,
    body: execStreamSchema,
    answer: { status: 200, body: { line: execLineSchema } },
  },
  startProcess: {
    method: "POST",
    path: `${sandbox}/processes`,
    summary: "Start a process that runs on by itself, until it ends, is ended, or its sandbox is removed",
    begins: true,
    body: startProcessSchema,
    answer: { status: 201, body: processSchema },
  },
  listProcesses: {
    method: "GET",
    path: `${sandbox}/processes`,
    isForAll: true,
    summary: "The processes of a sandbox, and the latest of those that have ended",
    answer: { status: 200, body: processListSchema },
  },
  getProcess: {
    method: "GET",
    path: process,
    isForAll: true,
    waitsForProcess: true,
    summary: "One process, at once or when it has ended",
    query: waitProcessSchema,
    answer: { status: 200, body: processSchema },
  },
  endProcess: {
    method: "DELETE",
    path: process,
    isForAll: true,
    waitsForProcess: true,
    summary: "End a process and everything that it has started. Its output can still be read",
    answer: none,
  },
  readOutput: {
    method: "GET",
    path: `${process}/output`,
    waitsForProcess: true,
    summary: "What a process has printed after a cursor. Reading again gives the same",
    query: readOutputSchema,
    answer: { status: 200, body: outputSchema },
  },
  writeInput: {
    method: "POST",
    path: `${process}/stdin`,
    waitsForProcess: true,
    summary: "Give a process input. It is answered when the process has room for more",
    body: "bytes",
    answer: none,
  },
  closeInput: {
    method: "DELETE",
    path: `${process}/stdin`,
    waitsForProcess: true,
    summary: "End the input of a process",
    answer: none,
  },
  resizeProcess: {
    method: "POST",
    path: `${process}/resize`,
    summary: "Change the size of a process's terminal",
    body: resizeSchema,
    answer: none,
  },
  signalProcess: {
    method: "POST",
    path: `${process}/signal`,
    summary: "Send a process a signal",
    body: signalSchema,
    answer: none,
  },
  attachProcess: {
    method: "GET",
    path: `${process}/attach`,
    summary:
      'A WebSocket: binary frames are the bytes of output and input. Text frames are {"type":"resize","rows","cols"} to the service, and from it {"type":"lost","bytes"} for output that is not kept any more, and at the end {"type":"exit","exitCode","signal"}',
    query: attachSchema,
    answer: { status: 101, body: null },
  },
  readFile: {
    method: "GET",
    path: `${sandbox}/files`,
    summary: "Read a file of any size, or a part of it",
    query: readFileSchema,
    headers: rangeHeadersSchema,
    answer: { status: 200, body: "bytes" },
  },
  writeFile: {
    method: "PUT",
    path: `${sandbox}/files`,
    summary: "Replace a file of any size whole, or make it",
    query: writeFileSchema,
    body: "stream",
    answer: none,
  },
  removeFile: {
    method: "DELETE",
    path: `${sandbox}/files`,
    summary: "Remove a file, or a directory",
    query: removeFileSchema,
    answer: none,
  },
  listEntries: {
    method: "GET",
    path: `${sandbox}/entries`,
    summary: "What a directory contains",
    query: listEntriesSchema,
    answer: { status: 200, body: entryListSchema },
  },
  statFile: {
    method: "GET",
    path: `${sandbox}/stat`,
    summary: "What kind of file is at a path, and how large it is",
    query: statFileSchema,
    answer: { status: 200, body: fileStatSchema },
  },
  makeDirectory: {
    method: "POST",
    path: `${sandbox}/mkdir`,
    summary: "Make a directory",
    body: makeDirectorySchema,
    answer: none,
  },
  moveFile: {
    method: "POST",
    path: `${sandbox}/move`,
    summary: "Move or rename a file or a directory. It takes the place of a file that is there",
    body: moveFileSchema,
    answer: none,
  },
  watchFiles: {
    method: "GET",
    path: `${sandbox}/files/watch`,
    waitsForProcess: true,
    summary:
      "What changes in a directory, one JSON object per line, from the first one on, which says that the watch has begun",
    query: watchFilesSchema,
    answer: { status: 200, body: { line: fileChangeLineSchema } },
  },
  readArchive: {
    method: "GET",
    path: `${sandbox}/archive`,
    summary: "A file or a directory with everything in it, as a tar archive below its own name",
    query: archiveSchema,
    answer: { status: 200, body: { bytes: ARCHIVE_TYPE } },
  },
  writeArchive: {
    method: "PUT",
    path: `${sandbox}/archive`,
    summary:
      "Put what is in a tar archive into a directory. Nothing is written through a link that is in the directory or the archive",
    query: archiveSchema,
    body: "stream",
    answer: none,
  },
  gradeSandbox: {
    method: "POST",
    path: `${sandbox}/grade`,
    summary:
      "End everything in the sandbox of a task, and grade in a fresh container what is left. Called again, gives the same",
    answer: { status: 200, body: attemptResultSchema },
  },
  forkSandbox: {
    method: "POST",
    path: `${sandbox}/fork`,
    summary:
      "Start sandboxes like this one on copies of its workspace, without its processes: all of them, or none",
    begins: true,
    body: forkSchema,
    answer: { status: 201, body: forkListSchema },
  },
  diffSandbox: {
    method: "GET",
    path: `${sandbox}/diff`,
    summary: "What is in the workspace that was not there at its start, when it was empty",
    query: readDiffSchema,
    answer: { status: 200, body: diffSchema },
  },
  takeSnapshot: {
    method: "POST",
    path: `${sandbox}/snapshots`,
    summary: "Store the files of the workspace, until the snapshot is deleted",
    begins: true,
    body: takeSnapshotSchema,
    answer: { status: 201, body: snapshotSchema },
  },
  listSnapshots: {
    method: "GET",
    path: "/v1/snapshots",
    summary: "The client's own snapshots",
    answer: { status: 200, body: snapshotListSchema },
  },
  deleteSnapshot: {
    method: "DELETE",
    path: "/v1/snapshots/{id}",
    summary: "Remove a snapshot. Sandboxes that were created from it stay",
    answer: none,
  },
  takeRestorePoint: {
    method: "POST",
    path: `${sandbox}/restore-points`,
    summary: "Store what has changed in the workspace since the last restore point, to go back to",
    answer: { status: 200, body: takenPointSchema },
  },
  listRestorePoints: {
    method: "GET",
    path: `${sandbox}/restore-points`,
    summary: "The restore points of the workspace, the first one first",
    answer: { status: 200, body: pointListSchema },
  },
  restore: {
    method: "POST",
    path: `${sandbox}/restore`,
    summary: "Make the workspace as it was at a restore point, while commands go on",
    body: restoreSchema,
    answer: { status: 200, body: takenPointSchema },
  },
  undo: {
    method: "POST",
    path: `${sandbox}/undo`,
    summary: "Make the workspace as it was before the last restore point that was not undone yet",
    answer: { status: 200, body: undoneSchema },
  },
  getProof: {
    method: "GET",
    path: `${sandbox}/proof`,
    summary: "What the kernel said of the policy before the first command",
    answer: { status: 200, body: proofSchema },
  },
  getReceipt: {
    method: "GET",
    path: `${sandbox}/receipt`,
    summary: "What a sandbox has left, once it was removed; the service knows the latest 1024",
    answer: { status: 200, body: receiptSchema },
  },
  getEgress: {
    method: "GET",
    path: `${sandbox}/egress`,
    summary: "What programs of a sandbox tried to reach, and with the network learn, a list of hosts for it",
    answer: { status: 200, body: egressSchema },
  },
  createEpisode: {
    method: "POST",
    path: "/v1/episodes",
    summary: "Have an agent work on a task, and grade what it leaves",
    begins: true,
    body: createEpisodeSchema,
    answer: { status: 202, body: episodeSchema },
  },
  listEpisodes: {
    method: "GET",
    path: "/v1/episodes",
    summary: "The client's own episodes",
    answer: { status: 200, body: episodeListSchema },
  },
  getEpisode: {
    method: "GET",
    path: episode,
    summary: "One episode, and its result once it has ended",
    query: pollSchema,
    answer: { status: 200, body: episodeSchema },
  },
  gradeEpisode: {
    method: "POST",
    path: `${episode}/grade`,
    summary: "Grade an episode that has ended again, from the artifacts that were kept",
    begins: true,
    answer: { status: 200, body: episodeSchema },
  },
  getTrajectory: {
    method: "GET",
    path: `${episode}/trajectory`,
    summary: "What the agent did, in the format ATIF",
    answer: { status: 200, body: "bytes" },
  },
  deleteEpisode: {
    method: "DELETE",
    path: episode,
    summary: "End an episode, and remove what it has left",
    answer: none,
  },
} as const satisfies Record<string, Route>;

export type RouteName = keyof typeof routes;
type RouteOf<Name extends RouteName> = (typeof routes)[Name];

/** What the body of a request is, once it is parsed; undefined for none. */
export type BodyOf<Name extends RouteName> =
  RouteOf<Name> extends { body: infer Body }
    ? Body extends z.ZodType
      ? z.output<Body>
      : Body extends "stream"
        ? UploadedBody
        : Buffer
    : undefined;

export type QueryOf<Name extends RouteName> =
  RouteOf<Name> extends { query: infer Query extends z.ZodType } ? z.output<Query> : undefined;

/** The headers of a request that its route names, once they are parsed. */
export type HeadersOf<Name extends RouteName> =
  RouteOf<Name> extends { headers: infer Headers extends z.ZodType } ? z.output<Headers> : undefined;
