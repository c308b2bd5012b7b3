import { STATUS_CODES } from "node:http";
import type { Duplex } from "node:stream";
import { BrigError, type ErrorCode } from "../../../errors.js";
import type { ErrorBody } from "../wire/error-body.js";

/** A request that is answered with this status instead of the one of its error code. */
export class Refusal extends BrigError {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;

  constructor(
    message: string,
    options: {
      status: number;
      code: ErrorCode;
      hint?: string;
      cause?: unknown;
      headers?: Readonly<Record<string, string>>;
    },
  ) {
    super(message, options);
    this.status = options.status;
    this.headers = options.headers ?? {};
  }
}

/** Try again later, in about so many seconds. */
export function busy(message: string, { status, retrySeconds }: { status: 429 | 503; retrySeconds: number }) {
  return new Refusal(message, {
    status,
    code: "serve.busy",
    hint: "try again later, after the time that the header Retry-After says",
    headers: { "retry-after": String(retrySeconds) },
  });
}

const RETRY_ELSEWHERE_SECONDS = 30;

/** The answer to a request for something new, such as a sandbox, while the service is being ended. */
export function ending(): Refusal {
  return busy("the service is ending", { status: 503, retrySeconds: RETRY_ELSEWHERE_SECONDS });
}

const hint = "GET /openapi.json describes all requests";

export function notFound(): Refusal {
  return new Refusal("there is nothing at this path", { status: 404, code: "serve.unknown", hint });
}

export function notAllowed(methods: readonly string[]): Refusal {
  const allow = methods.join(", ");
  return new Refusal(`this path takes only ${allow}`, {
    status: 405,
    code: "usage.invalid",
    hint,
    headers: { allow },
  });
}

export function upgradeRequired(): Refusal {
  return new Refusal("this path takes only WebSockets", {
    status: 426,
    code: "usage.invalid",
    hint,
    headers: { connection: "upgrade", upgrade: "websocket" },
  });
}

/** What is not here is 500: it is a fault of the service or of its engine. */
const statusOfCode: Partial<Record<ErrorCode, number>> = {
  "exec.bad-cwd": 400,
  "exec.invalid": 400,
  "policy.invalid": 400,
  "task.invalid": 400,
  "usage.invalid": 400,
  "workspace.invalid": 400,
  "file.not-permitted": 403,
  "serve.quota": 403,
  "file.not-found": 404,
  "image.missing": 404,
  "sandbox.unknown": 404,
  "serve.unknown": 404,
  "snapshot.unknown": 404,
  "file.exists": 409,
  "file.is-directory": 409,
  "file.not-directory": 409,
  "file.not-regular": 409,
  "file.read-only": 409,
  "file.symlink": 409,
  "file.failed": 409,
  "workspace.conflict": 409,
  "sandbox.gone": 410,
  "file.too-large": 413,
  "setup.failed": 422,
  "sandbox.port-failed": 502,
  "serve.busy": 503,
  "engine.unreachable": 503,
};

export interface RefusedAnswer {
  status: number;
  headers: Readonly<Record<string, string>>;
  body: ErrorBody;
}

/** What the client is told. An error that is not one of brig's own stays in the service: it may quote anything. */
export function refusedAnswer(error: unknown): RefusedAnswer {
  if (!(error instanceof BrigError))
    return {
      status: 500,
      headers: {},
      body: { error: { code: "serve.failed", message: "the service has a fault" } },
    };
  const { code, message, hint, errno, reason, disk } = error;
  const own = error instanceof Refusal ? error : null;
  return {
    status: own?.status ?? statusOfCode[code] ?? 500,
    headers: own?.headers ?? {},
    body: { error: { code, message, hint, errno, reason, disk } },
  };
}

/** Answers a request to upgrade a connection, which is closed then. */
export function refuseOnSocket(socket: Duplex, { status, headers }: RefusedAnswer, body: object): void {
  const text = JSON.stringify(body);
  const lines = Object.entries({
    "content-type": "application/json",
    "content-length": `${Buffer.byteLength(text)}`,
    connection: "close",
    ...headers,
  }).map(([name, value]) => `${name}: ${value}\r\n`);
  socket.once("finish", () => socket.destroy());
  socket.end(`HTTP/1.1 ${status} ${STATUS_CODES[status]}\r\n${lines.join("")}\r\n${text}`);
}
