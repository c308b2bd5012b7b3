import { type ChildProcess, execFileSync, spawn } from "node:child_process";
import { mkdir, mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { freePort } from "./free-port.js";
import { testProgram } from "./test-program.js";

const redis = await testProgram("redis-server");

export const hasRedis = redis.missing === null;

/** Null where there is a Redis server. */
export const whyNoRedis = redis.missing;

export const PASSWORD = "a:secret/p@ss";

/** A Redis server that keeps every write, with a password and, if asked for, only TLS. */
export class RedisServer implements AsyncDisposable {
  readonly #folder: string;
  readonly #port: number;
  readonly #usesTls: boolean;
  #process: ChildProcess | null = null;

  private constructor(folder: string, { port, usesTls }: { port: number; usesTls: boolean }) {
    this.#folder = folder;
    this.#port = port;
    this.#usesTls = usesTls;
  }

  static async start({ usesTls = false }: { usesTls?: boolean } = {}): Promise<RedisServer> {
    const folder = await mkdtemp(join(tmpdir(), "brig-test-redis-"));
    await mkdir(join(folder, "data"));
    const server = new RedisServer(folder, { port: await freePort(), usesTls });
    if (usesTls) makeCertificates(folder);
    await server.start();
    return server;
  }

  get url(): string {
    return `${this.#usesTls ? "rediss" : "redis"}://127.0.0.1:${this.#port}`;
  }

  get urlWithPassword(): string {
    return this.url.replace("://", `://:${encodeURIComponent(PASSWORD)}@`);
  }

  /** The certificate that signed the server's. */
  get ca(): string {
    return join(this.#folder, "ca.pem");
  }

  /** Everything that is in the server, as it is on its disk. */
  get dataFolder(): string {
    return join(this.#folder, "data");
  }

  async start(): Promise<void> {
    const port = String(this.#port);
    const file = (name: string) => join(this.#folder, name);
    const tls = [
      "--port",
      "0",
      "--tls-port",
      port,
      "--tls-auth-clients",
      "no",
      "--tls-ca-cert-file",
      this.ca,
    ];
    const child = spawn(
      "redis-server",
      [
        ...["--bind", "127.0.0.1", "--dir", this.dataFolder, "--requirepass", PASSWORD],
        ...["--save", "", "--appendonly", "yes", "--appendfsync", "always"],
        ...(this.#usesTls
          ? [...tls, "--tls-cert-file", file("server.pem"), "--tls-key-file", file("server.key")]
          : ["--port", port]),
      ],
      { stdio: ["ignore", "pipe", "inherit"] },
    );
    this.#process = child;
    await new Promise<void>((resolve, reject) => {
      child.on("exit", (status) => reject(new Error(`redis-server exited with ${status}`)));
      let log = "";
      child.stdout?.on("data", (text: Buffer) => {
        log += text;
        if (log.includes("Ready to accept connections")) resolve();
      });
    });
  }

  async kill(): Promise<void> {
    const child = this.#process;
    if (child === null || child.exitCode !== null || child.signalCode !== null) return;
    const ended = new Promise((resolve) => {
      child.once("exit", resolve);
    });
    child.kill("SIGKILL");
    await ended;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.kill();
    await rm(this.#folder, { recursive: true, force: true, maxRetries: 3 });
  }
}

function makeCertificates(folder: string): void {
  const openssl = (...args: string[]) => execFileSync("openssl", args, { cwd: folder, stdio: "ignore" });
  const days = ["-days", "2"];
  // Such keys are made at once, RSA's take up to seconds.
  const newKey = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"];
  openssl("req", "-x509", ...newKey, "-keyout", "ca.key", "-out", "ca.pem", "-subj", "/CN=ca", ...days);
  const request = [...newKey, "-keyout", "server.key", "-out", "server.csr"];
  openssl("req", ...request, "-subj", "/CN=redis", "-addext", "subjectAltName=IP:127.0.0.1");
  const signing = ["-CA", "ca.pem", "-CAkey", "ca.key", "-CAcreateserial", "-copy_extensions", "copy"];
  openssl("x509", "-req", "-in", "server.csr", "-out", "server.pem", ...signing, ...days);
}
