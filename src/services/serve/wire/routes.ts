import { z } from "zod";
import { attemptResultSchema } from "../../../batch/index.js";
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

/** One kind of request. The server, the client and the OpenAPI description are made from it. */
export interface Route {
  method: "GET" | "POST" | "PUT" | "DELETE";
  /** `{id}` stands for one part of the path. */
  path: string;
  summary: string;
  /** Answered without a token. */
  isOpen?: true;
  /** Refused while the service ends: it starts something new. */
  begins?: true;
  query?: z.ZodObject;
  body?: z.ZodObject | "bytes";
  answer: { status: number; body: z.ZodType | "bytes" | { line: z.ZodType } | null };
}

const sandbox = "/v1/sandboxes/{id}";
const episode = "/v1/episodes/{id}";
const none = { status: 204, body: null };

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
    body: createSandboxSchema,
    answer: { status: 201, body: sandboxSchema },
  },
  listSandboxes: {
    method: "GET",
    path: "/v1/sandboxes",
    summary: "The client's own sandboxes",
    answer: { status: 200, body: sandboxListSchema },
  },
  getSandbox: {
    method: "GET",
    path: sandbox,
    summary: "One sandbox",
    answer: { status: 200, body: sandboxSchema },
  },
  deleteSandbox: {
    method: "DELETE",
    path: sandbox,
    summary: "End everything in a sandbox and remove it",
    answer: none,
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
  readFile: {
    method: "GET",
    path: `${sandbox}/files`,
    summary: "Read a file, or a part of it",
    query: readFileSchema,
    answer: { status: 200, body: "bytes" },
  },
  writeFile: {
    method: "PUT",
    path: `${sandbox}/files`,
    summary: "Replace a file whole, or make it",
    query: writeFileSchema,
    body: "bytes",
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
  gradeSandbox: {
    method: "POST",
    path: `${sandbox}/grade`,
    summary:
      "End everything in the sandbox of a task, and grade in a fresh container what is left. Called again, gives the same",
    answer: { status: 200, body: attemptResultSchema },
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
  RouteOf<Name> extends { body: infer Body } ? (Body extends z.ZodType ? z.output<Body> : Buffer) : undefined;

export type QueryOf<Name extends RouteName> =
  RouteOf<Name> extends { query: infer Query extends z.ZodType } ? z.output<Query> : undefined;
