import { type ChildProcessWithoutNullStreams, spawn } from "node:child_process";
import http from "node:http";
import type { Socket } from "node:net";
import { Duplex } from "node:stream";
import { stripVTControlCharacters } from "node:util";
import { errnoOf } from "../../lib/errno.js";
import type { SshEndpoint } from "./endpoint.js";
import { UnusableConnection } from "./engine-failure.js";

/** Each is a process, and a login on the other machine. */
const MAX_IDLE = 4;
const LAST_WORDS = 1000;
const SHOWN_LINES = 3;
/** A background ssh that shares its connection with others may keep the stream open on which it reports errors. */
const WORDS_WAIT_MS = 300;

/**
 * Connects to an engine with OpenSSH's client, as docker does: so the user's own configuration, known hosts and keys count. An ssh
 * connection takes long to open, so each is used for many requests.
 */
export class SshAgent extends http.Agent {
  readonly #endpoint: SshEndpoint;

  constructor(endpoint: SshEndpoint) {
    super({ keepAlive: true, maxFreeSockets: MAX_IDLE });
    this.#endpoint = endpoint;
  }

  override createConnection(): Duplex {
    return new SshConnection(this.#endpoint);
  }
}

/** The standard streams of `docker system dial-stdio` on the engine's machine. `end()` closes only our side. */
class SshConnection extends Duplex {
  readonly #ssh: ChildProcessWithoutNullStreams;

  constructor(endpoint: SshEndpoint) {
    super({ allowHalfOpen: false });
    // In a session of its own, it never asks anything on the terminal, and Ctrl-C does not end it before what needs the engine to tidy up.
    const ssh = spawn("ssh", sshArguments(endpoint), { detached: true });
    this.#ssh = ssh;
    let words = "";
    ssh.stderr.setEncoding("utf8").on("data", (text: string) => {
      words = (words + text).slice(-LAST_WORDS);
    });
    ssh.stdout.on("data", (bytes: Buffer) => {
      if (!this.push(bytes)) ssh.stdout.pause();
    });
    // Why it ended is known only then, and says more than a broken pipe.
    for (const stream of [ssh.stdin, ssh.stdout, ssh.stderr]) stream.on("error", () => undefined);
    ssh.once("error", (error) => this.destroy(notStarted(error)));
    ssh.once("exit", () => setTimeout(() => ssh.stderr.destroy(), WORDS_WAIT_MS).unref());
    ssh.once("close", (status) => {
      if (status === 0) this.push(null);
      else this.destroy(sshFailure(endpoint, { status, words: lastLines(words) }));
    });
  }

  override _read(): void {
    this.#ssh.stdout.resume();
  }

  override _write(bytes: Uint8Array, _encoding: string, done: () => void): void {
    this.#ssh.stdin.write(bytes, () => done());
  }

  override _final(done: () => void): void {
    this.#ssh.stdin.end(() => done());
  }

  override _destroy(error: Error | null, done: (error: Error | null) => void): void {
    this.#ssh.kill();
    done(error);
  }

  /** Node keeps connections for later requests, and expects of them what sockets can do. */
  setKeepAlive(): this {
    return this;
  }

  setNoDelay(): this {
    return this;
  }

  setTimeout(): this {
    return this;
  }

  ref(): this {
    for (const one of this.#handles()) one.ref();
    return this;
  }

  /** A connection that is not in use does not keep brig from ending, and ends with it. */
  unref(): this {
    for (const one of this.#handles()) one.unref();
    return this;
  }

  #handles() {
    const { stdin, stdout, stderr } = this.#ssh;
    return [this.#ssh, ...([stdin, stdout, stderr] as unknown as Socket[])];
  }
}

/** Nothing is asked, a dead connection is noticed within a minute, and what is configured for interactive logins stays away. */
const options = [
  ...["BatchMode=yes", "ConnectTimeout=20", "ServerAliveInterval=15", "ServerAliveCountMax=3"],
  ...["ClearAllForwardings=yes", "ForwardAgent=no", "ForwardX11=no", "RemoteCommand=none", "RequestTTY=no"],
].flatMap((option) => ["-o", option]);

function sshArguments({ user, host, port, socketPath }: SshEndpoint): string[] {
  return [
    ...options,
    ...(user === null ? [] : ["-l", user]),
    ...(port === null ? [] : ["-p", String(port)]),
    ...["--", host, "docker"],
    ...(socketPath === null ? [] : ["--host", `unix://${socketPath}`]),
    ...["system", "dial-stdio"],
  ];
}

/** ssh warns of a changed key in a frame of @, and says what that means in the last lines. */
function lastLines(words: string): string {
  const lines = stripVTControlCharacters(words)
    .split(/\r?\n/)
    .map((line) => line.trim());
  return lines
    .filter((line) => line !== "" && !line.startsWith("@"))
    .slice(-SHOWN_LINES)
    .join(" ");
}

function notStarted(cause: Error): Error {
  if (errnoOf(cause) !== "ENOENT") return cause;
  return new UnusableConnection("there is no program ssh", {
    hint: "install OpenSSH's client: on Debian the package openssh-client",
    cause,
  });
}

function sshFailure(
  { user, host, port }: SshEndpoint,
  { status, words }: { status: number | null; words: string },
): UnusableConnection {
  const login = `ssh ${port === null ? "" : `-p ${port} `}${user === null ? "" : `${user}@`}${host}`;
  const [, hint] = advice.find(([pattern]) => pattern.test(words)) ?? [
    null,
    (it: string) => `try: ${it} docker version`,
  ];
  return new UnusableConnection(words || `ssh ended with status ${status}`, { hint: hint(login) });
}

const advice: readonly (readonly [RegExp, (login: string) => string])[] = [
  [
    /host key verification failed|host identification has changed|host key is known|differs from the key/i,
    (login) => `make sure that it is the right machine; then let ssh know its key, by: ${login}`,
  ],
  [
    /permission denied \(|too many authentication failures/i,
    (login) =>
      `brig logs in without asking: load the key with ssh-add, or name it under IdentityFile in ~/.ssh/config; try: ${login} -o BatchMode=yes true`,
  ],
  [
    /docker: (?:command )?not found|docker: no such file/i,
    () => "install the docker command on that machine, where the login's PATH has it",
  ],
  [
    /permission denied while trying to connect/i,
    () => "let that user use the engine of its machine: sudo usermod -aG docker USER",
  ],
];
