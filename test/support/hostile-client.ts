import { once } from "node:events";
import { Agent, request } from "node:http";
import { connect, type Socket } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";

export interface HostilePlace {
  port: number;
  /** Its own token. */
  token: string;
  /** Ids of sandboxes of other clients. */
  foreignIds: () => readonly string[];
  random: () => number;
  /** It gives up what it waits for. */
  signal: AbortSignal;
}

/** What an attack was answered with: a status, or how its connection ended. */
export type Answered = number | "cut" | "left";

interface Sent {
  method?: string;
  path: string;
  headers?: Record<string, string>;
  body?: string | Buffer;
  /** Leaves after so many milliseconds, whatever was answered. */
  leaveMs?: number;
}

/** Limits that its sandboxes have: this machine has other work as well. */
const SMALL = { memoryMb: 96, cpus: 0.25, pids: 48 };
const LONGEST_MS = 20_000;
const MIB = 1024 * 1024;

/** A client that does what a service should bear, each kind of it in `attacks`. All of them resolve to what was answered. */
export class HostileClient {
  readonly #place: HostilePlace;
  readonly #agent = new Agent({ keepAlive: true, maxSockets: 64 });
  /** The sandboxes that it has at the moment, some of which may be gone. */
  readonly #ids: string[] = [];

  constructor(place: HostilePlace) {
    this.#place = place;
  }

  /** By name, with the answers that are right for it besides 429 and a connection that is cut. */
  get attacks(): Record<string, { allowed: readonly Answered[]; run: () => Promise<Answered[]> }> {
    const served: Answered[] = [200, 201, 204, 404, 410, "left"];
    return {
      "a flood of creates": { allowed: [201, "left"], run: () => this.#creates() },
      "wrong tokens": { allowed: [401], run: () => this.#wrongTokens() },
      "sandboxes of others": { allowed: [404], run: () => this.#foreign() },
      "bodies that are too large": { allowed: [413], run: () => this.#giants() },
      nonsense: { allowed: [400, 404, 405, 413, 415, 426, 431], run: () => this.#nonsense() },
      "a fork bomb": { allowed: served, run: () => this.#forks() },
      "output for ever": { allowed: served, run: () => this.#endless() },
      "answers that nobody reads": { allowed: served, run: () => this.#unread() },
      "leaving at any moment": {
        allowed: [200, 201, 404, 410, "left"],
        run: () => this.#leave(),
      },
      "heads that come slowly": { allowed: [400, 408, "left"], run: () => this.#slowHeads() },
    };
  }

  close(): void {
    this.#agent.destroy();
  }

  get #id(): string {
    return this.#ids[Math.floor(this.#place.random() * this.#ids.length)] ?? "none";
  }

  async #wrongTokens(): Promise<Answered[]> {
    const tokens = ["", "x".repeat(64), `${this.#place.token}x`, this.#place.token.slice(1), "é"];
    return await this.#all(30, (at) => ({
      ...{ method: "POST", path: "/v1/sandboxes", body: "{}" },
      headers: { authorization: `Bearer ${encodeURIComponent(`${tokens[at % tokens.length]}`)}` },
    }));
  }

  async #foreign(): Promise<Answered[]> {
    const ids = this.#place.foreignIds();
    if (ids.length === 0) return [];
    const paths = ["", "/processes", "/exec", "/files?path=/etc/passwd", "/extend", "/network", "/fork"];
    return await this.#all(20, (at) => {
      const path = `${paths[at % paths.length]}`;
      const isPost = ["/exec", "/extend", "/fork"].includes(path);
      return {
        path: `/v1/sandboxes/${ids[at % ids.length]}${path}`,
        method: isPost ? "POST" : path === "/network" ? "PUT" : at % 2 === 0 ? "DELETE" : "GET",
        ...(isPost && {
          body: JSON.stringify(path === "/exec" ? { argv: ["true"] } : { lifeMs: 1, count: 1 }),
        }),
        ...(path === "/network" && { body: '{"network":"none"}' }),
      };
    }).then((answers) => answers.map((one) => (one === 405 || one === 400 ? 404 : one)));
  }

  async #giants(): Promise<Answered[]> {
    return await this.#all(3, (at) => ({
      ...{ method: "POST", path: "/v1/sandboxes" },
      body: at === 0 ? Buffer.alloc(17 * MIB, "[") : Buffer.alloc(1024),
      ...(at > 0 && { headers: { "content-length": `${at}${"0".repeat(12)}` } }),
      leaveMs: 5000,
    })).then((answers) => answers.map((one) => (one === "left" ? "cut" : one)));
  }

  async #nonsense(): Promise<Answered[]> {
    const { token } = this.#place;
    const raw = (text: string) => this.#raw(text, { leaveMs: 1000 });
    const head = `Host: localhost\r\nAuthorization: Bearer ${token}\r\n`;
    return await Promise.all([
      this.#send({ method: "POST", path: "/v1/sandboxes", body: "{]" }),
      this.#send({ method: "POST", path: "/v1/sandboxes", body: "[".repeat(100_000) }),
      this.#send({ method: "POST", path: "/v1/sandboxes", body: '{"__proto__":{"a":1},"x":1}' }),
      this.#send({ method: "PATCH", path: "/v1/sandboxes" }),
      this.#send({ path: "/v1/../../../etc/passwd" }),
      this.#send({ path: `/v1/sandboxes/${"%2e%2e%2f".repeat(20)}` }),
      this.#send({ path: "/v1/overview?from=-1&count=1000000" }),
      this.#send({ path: "/v1/sandboxes", headers: { "x-long": "x".repeat(60_000) } }),
      raw(`GET /v1/sandboxes HTTP/1.1\r\n${head}Content-Length: x\r\n\r\n`),
      raw(
        `POST /v1/sandboxes HTTP/1.1\r\n${head}Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n`,
      ),
      raw("\u0000\u0001\u0002garbage\r\n\r\n"),
    ]);
  }

  async #creates(): Promise<Answered[]> {
    const { random } = this.#place;
    const answers = await this.#all(20, (at) => ({
      ...{ method: "POST", path: "/v1/sandboxes" },
      body: JSON.stringify({
        limits: SMALL,
        idleMs: 5000,
        maxLifeMs: 20_000,
        ...(at % 4 === 0 && { waitMs: 3000 }),
      }),
      ...(at % 3 === 0 && { leaveMs: 1 + 200 * random() }),
    }));
    await this.#lookForOwn();
    return answers;
  }

  async #lookForOwn(): Promise<void> {
    const body = await this.#text("/v1/sandboxes");
    const { sandboxes = [] } = JSON.parse(body || "{}") as { sandboxes?: { id: string }[] };
    this.#ids.splice(0, this.#ids.length, ...sandboxes.map(({ id }) => id));
  }

  async #forks(): Promise<Answered[]> {
    const argv = ["bash", "-c", "bomb() { bomb | bomb & }; bomb; sleep 5"];
    return [
      await this.#exec({ argv, timeoutMs: 3000 }),
      await this.#exec({ argv: ["true"], timeoutMs: 3000 }),
    ];
  }

  async #endless(): Promise<Answered[]> {
    const path = `/v1/sandboxes/${this.#id}/processes`;
    const start = (argv: string[]) => this.#send({ method: "POST", path, body: JSON.stringify({ argv }) });
    return await Promise.all([
      start(["yes"]),
      start(["cat", "/dev/zero"]),
      start(["sh", "-c", "while :; do echo x >&2; done"]),
      this.#exec({ argv: ["yes"], timeoutMs: 1500, maxOutputBytes: 8 * MIB }),
      this.#exec({
        argv: ["sh", "-c", "head -c 200M /dev/zero > /tmp/fill; tail /dev/zero"],
        timeoutMs: 1500,
      }),
    ]);
  }

  async #unread(): Promise<Answered[]> {
    const body = JSON.stringify({ argv: ["cat", "/dev/zero"], timeoutMs: 4000 });
    const text = this.#head("POST", `/v1/sandboxes/${this.#id}/exec-stream`, body.length) + body;
    return await Promise.all([1, 2, 3].map(() => this.#raw(text, { leaveMs: 3000, isPaused: true })));
  }

  async #leave(): Promise<Answered[]> {
    const { random } = this.#place;
    const id = this.#id;
    const run = JSON.stringify({ argv: ["sh", "-c", "head -c 100000 /dev/zero; sleep 2"] });
    const texts = [
      this.#head("POST", `/v1/sandboxes/${id}/exec`, run.length) + run,
      this.#head("POST", `/v1/sandboxes/${id}/exec-stream`, run.length) + run,
      this.#head("POST", `/v1/sandboxes/${id}/processes`, run.length) + run,
      this.#head("PUT", `/v1/sandboxes/${id}/files?path=/tmp/part`, 100_000) + "x".repeat(50_000),
      this.#head("GET", "/v1/overview", 0),
    ];
    return await Promise.all(
      texts.flatMap((text) =>
        [text.slice(0, Math.floor(random() * text.length)), text].map((part) =>
          this.#raw(part, { leaveMs: 300 * random() }),
        ),
      ),
    );
  }

  async #slowHeads(): Promise<Answered[]> {
    return await Promise.all(
      Array.from({ length: 10 }, async () => {
        const socket = this.#connect();
        const answered = this.#answerOf(socket);
        for (let count = 0; count < 20 && !socket.destroyed; count++) {
          socket.write(count === 0 ? "GET / HTTP/1.1\r\n" : "X: y\r\n");
          await sleep(100);
        }
        socket.destroy();
        return await answered;
      }),
    );
  }

  async #exec(command: object): Promise<Answered> {
    const path = `/v1/sandboxes/${this.#id}/exec`;
    return await this.#send({ method: "POST", path, body: JSON.stringify(command) });
  }

  async #all(count: number, sent: (at: number) => Sent): Promise<Answered[]> {
    return await Promise.all(Array.from({ length: count }, (_, at) => this.#send(sent(at))));
  }

  async #text(path: string): Promise<string> {
    let body = "";
    await this.#send({ path }, (chunk) => {
      body += chunk.toString();
    });
    return body;
  }

  async #send(
    { method = "GET", path, headers = {}, body, leaveMs = LONGEST_MS }: Sent,
    onData: (chunk: Buffer) => void = () => undefined,
  ): Promise<Answered> {
    const { port, token, signal } = this.#place;
    return await new Promise<Answered>((resolve) => {
      const sent = request({
        ...{ host: "127.0.0.1", port, method, path, agent: this.#agent, signal },
        headers: { authorization: `Bearer ${token}`, ...headers },
      });
      let answered: Answered = "cut";
      const timer = setTimeout(() => {
        resolve("left");
        sent.destroy();
      }, leaveMs);
      sent.on("close", () => {
        clearTimeout(timer);
        resolve(answered);
      });
      sent.on("error", () => undefined);
      sent.on("response", (response) => {
        answered = response.statusCode ?? "cut";
        response.on("data", onData);
        response.on("error", () => undefined);
      });
      sent.end(body);
    });
  }

  #head(method: string, path: string, length: number): string {
    const { token } = this.#place;
    return `${method} ${path} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer ${token}\r\nContent-Length: ${length}\r\n\r\n`;
  }

  /** Sends bytes as they are, and leaves after a while. */
  async #raw(
    text: string,
    { leaveMs, isPaused = false }: { leaveMs: number; isPaused?: boolean },
  ): Promise<Answered> {
    const socket = this.#connect();
    const answered = isPaused ? Promise.resolve<Answered>("left") : this.#answerOf(socket);
    socket.write(text);
    await Promise.race([sleep(leaveMs), once(socket, "close").catch(() => undefined)]);
    socket.destroy();
    return await answered;
  }

  #connect(): Socket {
    const socket = connect(this.#place.port, "127.0.0.1");
    socket.on("error", () => undefined);
    return socket;
  }

  /** The status in the first bytes that come back. */
  async #answerOf(socket: Socket): Promise<Answered> {
    let first = "";
    socket.on("data", (chunk: Buffer) => {
      if (first.length < 64) first += chunk.toString("latin1");
    });
    await once(socket, "close").catch(() => undefined);
    const status = /^HTTP\/1\.1 (\d{3})/.exec(first)?.[1];
    return status === undefined ? "cut" : Number(status);
  }
}
