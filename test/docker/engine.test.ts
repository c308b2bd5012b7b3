import { once } from "node:events";
import { buffer } from "node:stream/consumers";
import { afterEach, beforeAll, describe, expect, it } from "vitest";
import { packTar } from "../../src/sandbox/docker/calls/tar.js";
import type { ContainerBody, Engine } from "../../src/sandbox/docker/engine-types.js";
import { ensureImages } from "../../src/sandbox/images/ensure.js";
import { containerBody } from "../support/container-body.js";
import { harmedEngine, testEngine } from "../support/engine.js";
import { testLabel, testLabels } from "../support/test-run.js";

let engine: Engine;
let base: string;
const made: string[] = [];

beforeAll(async () => {
  engine = await testEngine();
  ({ base } = await ensureImages(engine, { names: ["base"] }));
});

afterEach(async () => {
  for (const id of made.splice(0)) await engine.removeContainer(id);
});

async function start(argv: string[], changes: Partial<ContainerBody> = {}): Promise<string> {
  const id = await engine.createContainer({ ...body(base, argv), ...changes });
  made.push(id);
  await engine.startContainer(id);
  return id;
}

function body(image: string, argv: string[]): ContainerBody {
  return containerBody(image, argv, { Labels: testLabels() });
}

/** The payload of all frames, whatever their stream. */
function payload(frames: Buffer): Buffer {
  const parts: Buffer[] = [];
  for (let at = 0; at < frames.length; ) {
    const length = frames.readUInt32BE(at + 4);
    parts.push(frames.subarray(at + 8, at + 8 + length));
    at += 8 + length;
  }
  return Buffer.concat(parts);
}

async function output(id: string, argv: string[], input: Buffer = Buffer.alloc(0)) {
  const exec = await engine.openExec(id, argv);
  const frames: Buffer[] = [];
  exec.stream.on("data", (chunk: Buffer) => frames.push(Buffer.from(chunk)));
  exec.stream.end(input);
  await once(exec.stream, "close");
  let state = await exec.inspect();
  while (state.running) state = await exec.inspect();
  return { bytes: payload(Buffer.concat(frames)), ...state };
}

describe("the engine of this machine", () => {
  it("says what it is", async () => {
    const info = await engine.info();
    expect(info.os).toBe("linux");
    expect(["amd64", "arm64"]).toContain(info.arch);
    expect(Number(info.apiVersion.split(".")[1])).toBeGreaterThanOrEqual(41);
    expect(info.runtimes.map(({ name }) => name)).toContain(info.defaultRuntime);
    expect(info.memoryBytes).toBeGreaterThan(100_000_000);
  });

  it("takes five megabytes on an exec's stdin, sees its end, and still gets the whole answer", async () => {
    const id = await start(["sleep", "60"]);
    const input = Buffer.alloc(5_000_000, "brig ");
    const { bytes, exitCode } = await output(id, ["sh", "-c", "sleep 0.2; cat; exit 7"], input);
    expect(bytes.equals(input)).toBe(true);
    expect(exitCode).toBe(7);
  });

  it("loses no first bytes of a command that answers at once", async () => {
    const id = await start(["sleep", "60"]);
    for (let round = 0; round < 20; round += 1) {
      expect((await output(id, ["echo", "first"])).bytes.toString()).toBe("first\n");
    }
  });

  it("takes files into a container that has not started", async () => {
    const id = await engine.createContainer(body(base, ["sh", "-c", "test -x /opt/tool && exit 3"]));
    made.push(id);
    await engine.putArchive(id, "/opt", packTar([{ path: "tool", mode: 0o755, content: Buffer.from("x") }]));
    await engine.startContainer(id);
    expect(await engine.waitContainer(id)).toBe(3);
    expect(await engine.inspectContainer(id)).toMatchObject({ running: false, exitCode: 3 });
  });

  it("finds containers by label, running or not", async () => {
    const id = await engine.createContainer(body(base, ["true"]));
    made.push(id);
    const own = `${testLabel}=${testLabels()[testLabel]}`;
    expect((await engine.listContainers([own])).map((container) => container.id)).toContain(id);
    expect(await engine.listContainers([own, "brig.absent"])).toEqual([]);
  });

  it("kills and removes what is dead or gone without complaint", async () => {
    const id = await start(["sleep", "60"]);
    await engine.killContainer(id);
    await engine.killContainer(id);
    await engine.removeContainer(id);
    await engine.removeContainer(id);
    await engine.killContainer(id);
    expect(await engine.inspectContainer(id)).toBeNull();
  });

  it("tells an exec in a stopped or removed container from other failures", async () => {
    const id = await start(["true"]);
    await engine.waitContainer(id);
    const gone = { code: "sandbox.gone", reason: "killed" };
    await expect(engine.openExec(id, ["true"])).rejects.toMatchObject(gone);
    await engine.removeContainer(id);
    await expect(engine.openExec(id, ["true"])).rejects.toMatchObject(gone);
  });

  it("says which image is missing", async () => {
    const missing = engine.createContainer(body("brig/absent:none", ["true"]));
    await expect(missing).rejects.toMatchObject({
      code: "image.missing",
      message: expect.stringMatching(/brig\/absent:none/),
    });
    expect(await engine.inspectImage("brig/absent:none")).toBeNull();
  });

  it("does not let an image's name reach another endpoint", async () => {
    for (const ref of ["../info", "a/../../info", "x?y", "", "a//b"]) {
      await expect(engine.inspectImage(ref)).rejects.toMatchObject({ code: "usage.invalid" });
    }
  });

  it("shows the end of the log when a build fails", async () => {
    const dockerfile = Buffer.from(`FROM ${base}\nRUN echo a clear reason >&2; exit 9\n`);
    const context = packTar([{ path: "Dockerfile", mode: 0o644, content: dockerfile }]);
    const failure = engine.buildImage(context, { tag: "brig/test-failure:x", labels: testLabels() });
    await expect(failure).rejects.toMatchObject({
      code: "image.build-failed",
      message: expect.stringMatching(/a clear reason/),
    });
  });

  it("rejects with the signal's own reason when a call is aborted", async () => {
    const id = await start(["sleep", "60"]);
    const reason = new Error("enough");
    await expect(engine.waitContainer(id, { signal: abortSoon(reason) })).rejects.toBe(reason);
  });
});

describe("a second engine in a container", () => {
  it("runs containers, and is unreachable once it is stopped", async () => {
    await using harmed = await harmedEngine();
    const { toolbox = "" } = harmed.images;
    const id = await harmed.engine.createContainer(body(toolbox, ["/.brig/rg", "--version"]));
    await harmed.engine.startContainer(id);
    expect(await harmed.engine.waitContainer(id)).toBe(0);
    expect(await engine.inspectContainer(id)).toBeNull();

    await harmed.stop();
    await expect(harmed.engine.inspectContainer(id)).rejects.toMatchObject({ code: "engine.unreachable" });
  });

  it("breaks a call that is under way when it is stopped", async () => {
    await using harmed = await harmedEngine();
    // It searches its input, which does not end.
    const argv = ["/.brig/rg", "never"];
    const id = await harmed.engine.createContainer({
      ...body(harmed.images.toolbox ?? "", argv),
      OpenStdin: true,
    });
    await harmed.engine.startContainer(id);
    const exec = await harmed.engine.openExec(id, argv);
    const stream = buffer(exec.stream).catch(() => "broken");
    const waiting = harmed.engine.waitContainer(id).catch((error: unknown) => error);
    await harmed.stop();
    await stream;
    expect(await waiting).toMatchObject({ code: "engine.unreachable" });
  });
});

function abortSoon(reason: Error): AbortSignal {
  const controller = new AbortController();
  setTimeout(() => controller.abort(reason), 50);
  return controller.signal;
}
