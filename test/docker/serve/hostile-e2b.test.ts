import { once } from "node:events";
import { Agent, type ClientRequest, type IncomingMessage, request } from "node:http";
import { buffer } from "node:stream/consumers";
import { Sandbox } from "e2b";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { heldDuring } from "../../support/garbage.js";
import { openServed, type Served } from "../../support/served.js";

const MIB = 1024 * 1024;
/** What is kept of the output of a sandbox's processes, and what is on its way. */
const MOST_MEMORY_BYTES = (32 + 48) * MIB;

let served: Served;
let sandbox: Sandbox;

beforeAll(async () => {
  served = await openServed({ bufferedBytes: 128 * MIB, http: { headMs: 1000, requestMs: 1500 } });
});

beforeEach(async () => {
  sandbox = await Sandbox.create({ ...served.e2b[0], validateApiKey: false });
});

afterEach(async () => {
  await sandbox.kill();
});

afterAll(async () => {
  await served[Symbol.asyncDispose]();
  expect(served.warnings).toEqual([]);
});

const agent = new Agent({ keepAlive: true, maxSockets: 200 });

function open(path: string, headers: Record<string, string> = {}): ClientRequest {
  const { envdAccessToken } = sandbox as unknown as { envdAccessToken: string };
  const sent = request(served.url + path, {
    method: "POST",
    agent,
    headers: {
      "content-type": "application/connect+json",
      "e2b-sandbox-id": sandbox.sandboxId,
      "e2b-sandbox-port": "49983",
      "x-access-token": envdAccessToken,
      ...headers,
    },
  });
  sent.on("error", () => undefined);
  return sent;
}

function envelope(
  message: string | object,
  { flags = 0, length }: { flags?: number; length?: number } = {},
): Buffer {
  const bytes = Buffer.from(typeof message === "string" ? message : JSON.stringify(message));
  const head = Buffer.alloc(5);
  head.writeUInt8(flags, 0);
  head.writeUInt32BE(length ?? bytes.length, 1);
  return Buffer.concat([head, bytes]);
}

/** The messages of an answer. */
function messagesIn(bytes: Buffer): { flags: number; message: Record<string, unknown> }[] {
  const messages = [];
  for (let at = 0; at + 5 <= bytes.length; ) {
    const end = at + 5 + bytes.readUInt32BE(at + 1);
    const message = JSON.parse(bytes.toString("utf8", at + 5, end)) as Record<string, unknown>;
    messages.push({ flags: bytes.readUInt8(at), message });
    at = end;
  }
  return messages;
}

async function answerOf(sent: ClientRequest, body?: Buffer) {
  sent.end(body);
  const [response] = (await once(sent, "response")) as [IncomingMessage];
  const bytes = await buffer(response);
  return { status: Number(response.statusCode), type: response.headers["content-type"], bytes };
}

const START = "/process.Process/Start";
const start = (script: string) => envelope({ process: { cmd: "/bin/bash", args: ["-c", script] } });

/** How many programs of this kind run. */
const countOf = async (pattern: string) =>
  Number((await sandbox.commands.run(`pgrep -fc '[${pattern[0]}]${pattern.slice(1)}' || true`)).stdout);

const works = async () => expect((await sandbox.commands.run("echo works")).stdout).toBe("works\n");

describe("a message", () => {
  it.each([
    ["half an envelope", Buffer.from([0, 0])],
    ["an envelope whose message is shorter than it says", envelope("{}", { length: 100 })],
    ["an envelope that says 4 GiB", envelope("{}", { length: 2 ** 32 - 1 })],
    ["two envelopes", Buffer.concat([envelope({}), envelope({})])],
    ["unknown flags", envelope({}, { flags: 77 })],
    ["no JSON", envelope("{")],
    ["JSON of another shape", envelope([1])],
    ["no command", envelope({ process: {} })],
    ["deep nesting", envelope(`{"process":${"[".repeat(100_000)}${"]".repeat(100_000)}}`)],
    ["a NUL in an argument", envelope({ process: { cmd: "a\0b" } })],
    [
      "a terminal without a size",
      envelope({ process: { cmd: "true" }, pty: { size: { cols: 0, rows: 0 } } }),
    ],
  ])("that is %s is refused in the form of streams", async (_name, body) => {
    const { status, type, bytes } = await answerOf(open(START), body);
    expect([status, type]).toEqual([200, "application/connect+json"]);
    expect(messagesIn(bytes)).toEqual([
      { flags: 2, message: { error: { code: "invalid_argument", message: expect.any(String) } } },
    ]);
  });

  it.each([
    ["compressed", envelope({}, { flags: 1 }), {}],
    ["in another codec", envelope({}), { "content-type": "application/connect+proto" }],
  ])("that is %s is not supported", async (_name, body, headers) => {
    const { bytes } = await answerOf(open(START, headers), body);
    expect(messagesIn(bytes)[0]?.message).toMatchObject({ error: { code: "unimplemented" } });
  });

  it("of a call with one answer is refused with a status and a code", async () => {
    const json = { "content-type": "application/json" };
    const call = async (method: string, body: object | string) => {
      const text = typeof body === "string" ? body : JSON.stringify(body);
      const { status, bytes } = await answerOf(open(method, json), Buffer.from(text));
      return [status, (JSON.parse(bytes.toString()) as { code: string }).code];
    };
    const signal = "/process.Process/SendSignal";
    expect(await call(signal, { process: { pid: 7 }, signal: "SIGNAL_SIGKILL" })).toEqual([404, "not_found"]);
    expect(await call(signal, { process: {}, signal: 9 })).toEqual([400, "invalid_argument"]);
    expect(await call(signal, { process: { pid: 1 }, signal: "SIGSTOP" })).toEqual([400, "invalid_argument"]);
    expect(await call("/process.Process/StreamInput", {})).toEqual([501, "unimplemented"]);
    expect(await call("/process.Process/__proto__", {})).toEqual([404, "unimplemented"]);
    expect(await call("/filesystem.Filesystem/Stat", { path: "/a\0b" })).toEqual([400, "invalid_argument"]);
    expect(await call("/filesystem.Filesystem/Stat", { path: "/nowhere" })).toEqual([404, "not_found"]);
  });

  it("that is giant is refused while it comes, and holds nothing", async () => {
    const held = await heldDuring(async () => {
      for (let count = 0; count < 5; count++) {
        const sent = open(START);
        // A client that goes on sending may find its connection closed before it has read why, also in the middle of the answer,
        // which is therefore read at once.
        const answered = new Promise<Buffer | null>((resolve) => {
          const unanswered = () => resolve(null);
          sent.once("close", unanswered).once("response", (response) => {
            sent.off("close", unanswered);
            // On a slow machine the time for a request may be over first.
            const isLate = response.statusCode === 408;
            buffer(response).then((bytes) => resolve(isLate ? null : bytes), unanswered);
          });
        });
        let isOver = false;
        void answered.then(() => {
          isOver = true;
        });
        sent.write(envelope("", { length: 512 * MIB }));
        for (let mebibytes = 0; mebibytes < 512 && !isOver; mebibytes++)
          if (!sent.write(Buffer.alloc(MIB)))
            await Promise.race([new Promise((resolve) => sent.once("drain", resolve)), answered]);
        const bytes = await answered;
        if (bytes !== null)
          expect(messagesIn(bytes)[0]?.message).toMatchObject({ error: { code: "resource_exhausted" } });
        sent.destroy();
      }
    });
    expect(held).toBeLessThan(32 * MIB);
    await works();
  });

  it("that stops in the middle ends its connection", async () => {
    const sent = open(START);
    sent.write(envelope("{}", { length: 100 }));
    await new Promise((resolve) => sent.once("close", resolve));
    await works();
  });
});

describe("streams", () => {
  it("are as many as there is memory for, and the others are refused", async () => {
    const script = "sleep 7711";
    const all = Array.from({ length: 500 }, () => {
      const sent = open(START);
      sent.end(start(script));
      return sent;
    });
    const first = await Promise.all(
      all.slice(0, 200).map(async (sent) => {
        const [response] = (await once(sent, "response")) as [IncomingMessage];
        const [piece] = (await once(response, "data")) as [Buffer];
        return messagesIn(piece)[0]?.message ?? {};
      }),
    );
    expect(first.some(({ event }) => event !== undefined)).toBe(true);
    for (const message of first)
      if (message.event === undefined)
        expect(message).toMatchObject({ error: { code: "resource_exhausted" } });
    for (const sent of all) sent.destroy();
    await expect
      .poll(
        async () =>
          await works().then(
            () => true,
            () => false,
          ),
      )
      .toBe(true);
    // Those that have begun run on, and can all be ended.
    for (const { pid } of await sandbox.commands.list()) await sandbox.commands.kill(pid);
    expect(await countOf(script)).toBe(0);
  });

  it("that nobody reads hold no more than what is kept of the output, and the command goes on", async () => {
    const held = await heldDuring(async () => {
      for (let count = 0; count < 4; count++) {
        const sent = open(START);
        sent.end(start("cat /dev/zero"));
        const [response] = (await once(sent, "response")) as [IncomingMessage];
        response.pause();
      }
      await new Promise((resolve) => setTimeout(resolve, 5000));
    });
    expect(held).toBeLessThan(MOST_MEMORY_BYTES);
    expect(await countOf("cat /dev/zero")).toBe(4);
    await works();
  });

  it("whose clients go in any phase leave no half of anything", async () => {
    for (let round = 0; round < 40; round++) {
      const sent = open(round % 2 === 0 ? START : "/filesystem.Filesystem/WatchDir");
      const body = round % 2 === 0 ? start("sleep 7712") : envelope({ path: "/tmp", recursive: true });
      sent.write(body.subarray(0, round < 10 ? 3 : body.length));
      if (round >= 10) sent.end();
      if (round >= 20) await new Promise((resolve) => setTimeout(resolve, round * 3));
      sent.destroy();
    }
    await expect.poll(async () => await countOf("/.brig/watch")).toBe(0);
    // A command whose pid was told runs on; no other does.
    const listed = await sandbox.commands.list();
    expect(listed.length).toBeLessThanOrEqual(15);
    await Promise.all(listed.map(async ({ pid }) => await sandbox.commands.kill(pid)));
    expect(await countOf("sleep 7712")).toBe(0);
    await works();
  });
});

describe("a stream of a command that prints nothing", () => {
  it("is kept alive as often as its client asks, and ends when its time is over", async () => {
    const sent = open(START, { "keepalive-ping-interval": "1", "connect-timeout-ms": "3500" });
    const { bytes } = await answerOf(sent, start("setsid sleep 7713 & sleep 7713"));
    const messages = messagesIn(bytes);
    const kinds = messages.map(({ message }) => Object.keys(message.event ?? message).join());
    expect(kinds[0]).toBe("start");
    expect(kinds.filter((kind) => kind === "keepalive").length).toBeGreaterThanOrEqual(2);
    expect(messages.at(-1)).toMatchObject({ flags: 2, message: { error: { code: "deadline_exceeded" } } });
    await expect.poll(async () => await countOf("sleep 7713")).toBe(0);
  });
});

describe("files", () => {
  it("of an upload that breaks off take no place", async () => {
    await sandbox.files.write("kept", "before");
    for (const type of ["application/octet-stream", "multipart/form-data; boundary=x"]) {
      const sent = open("/files?path=kept", { "content-type": type });
      const head = '--x\r\ncontent-disposition: form-data; name="file"; filename="kept"\r\n\r\n';
      sent.write(type.startsWith("multipart") ? `${head}half` : "half");
      await new Promise((resolve) => setTimeout(resolve, 200));
      sent.destroy();
    }
    await expect.poll(async () => (await sandbox.commands.run("ls -A | grep brig- || true")).stdout).toBe("");
    expect(await sandbox.files.read("kept")).toBe("before");
  });

  it.each([
    ["no boundary", "multipart/form-data", ""],
    ["no end", "multipart/form-data; boundary=x", "--x\r\n\r\nabc"],
    ["a head without end", "multipart/form-data; boundary=x", `--x\r\n${"a".repeat(100_000)}`],
    ["no gzip", "application/octet-stream", "plain"],
  ])("in a form with %s are refused", async (name, type, body) => {
    const gzip = name === "no gzip" && { "content-encoding": "gzip" };
    const { status } = await answerOf(
      open("/files?path=x", { "content-type": type, ...gzip }),
      Buffer.from(body),
    );
    expect(status).toBe(400);
    expect(await sandbox.files.exists("x")).toBe(false);
  });

  it("with names of any bytes, and more than can be listed, are listed or refused", async () => {
    await sandbox.commands.run(
      "mkdir odd many; cd odd; touch $'\\xff' $'a\\nb'; cd ../many; seq 12000 | xargs touch",
    );
    const names = (await sandbox.files.list("odd")).map(({ name }) => name);
    expect(names).toEqual(["a\nb", "\ufffd"]);
    await expect(sandbox.files.list("many")).rejects.toThrow(/more than 10000/);
    await works();
  });

  it("that are no files are refused at once", async () => {
    await sandbox.commands.run("mkfifo fifo");
    await expect(sandbox.files.read("fifo")).rejects.toThrow(/fifo/);
    await expect(sandbox.files.write("fifo", "x")).rejects.toThrow(/fifo/);
    await expect(sandbox.files.read("/dev/zero")).rejects.toThrow(/device/);
  });

  it("bombs of gzip end where the sandbox has no room", async () => {
    const { createGzip } = await import("node:zlib");
    const zip = createGzip();
    const sent = open("/files?path=/dev/shm/bomb", {
      "content-type": "application/octet-stream",
      "content-encoding": "gzip",
    });
    zip.pipe(sent);
    const held = await heldDuring(async () => {
      const answered = new Promise<IncomingMessage | null>((resolve) => {
        sent.once("response", resolve).once("close", () => resolve(null));
      });
      let isOver = false;
      void answered.then(() => {
        isOver = true;
      });
      for (let mebibytes = 0; mebibytes < 20_000 && !isOver; mebibytes++)
        if (!zip.write(Buffer.alloc(MIB)))
          await Promise.race([new Promise((resolve) => zip.once("drain", resolve)), answered]);
      expect((await answered)?.statusCode ?? 507).toBe(507);
      sent.destroy();
      zip.destroy();
    });
    expect(held).toBeLessThan(48 * MIB);
    await works();
  });
});
