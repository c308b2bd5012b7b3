import { Readable } from "node:stream";
import { describe, expect, it } from "vitest";
import { readEnvironment } from "../../../../src/lib/env.js";
import { connectEngine } from "../../../../src/sandbox/docker/connect.js";
import type { Engine } from "../../../../src/sandbox/docker/engine-types.js";
import { type Answer, fakeEngine, reply } from "../../../support/fake-engine.js";

async function withEngine(answer: Answer, use: (engine: Engine) => Promise<void>): Promise<void> {
  await using fake = await fakeEngine(answer);
  await use(
    await connectEngine({ env: readEnvironment({ HOME: "/proc/nonexistent" }), endpoint: fake.address }),
  );
}

const refuse =
  (status: number, message: string): Answer =>
  (_request, response) =>
    reply(response, status, { message });

describe("what the engine's refusals become", () => {
  it("keeps the engine's own words", async () => {
    await withEngine(refuse(500, "driver failed programming"), async (engine) => {
      await expect(engine.startContainer("c1")).rejects.toMatchObject({
        code: "engine.failed",
        message: "cannot start the container: driver failed programming (HTTP 500)",
      });
    });
  });

  it("says in a field that the engine's disk is full", async () => {
    for (const [words, errno] of [
      ["mkdir /var/lib/docker/overlay2/x: no space left on device", "ENOSPC"],
      ["write /x: disk quota exceeded", "EDQUOT"],
      [
        "failed to remove root filesystem: openfdat /var/lib/docker/overlay2/x/d/d: too many open files",
        "EMFILE",
      ],
      ["runc: mkdir /x: No space left on device: unknown", "ENOSPC"],
      ["driver failed programming", undefined],
      // Somebody in a container has chosen these names.
      ["lstat /app/no space left on device/x: permission denied", undefined],
      [`lstat ${"/no space left on device".repeat(400)}: file name too long`, "ENAMETOOLONG"],
    ])
      await withEngine(refuse(500, words ?? ""), async (engine) => {
        await expect(engine.startContainer("c1")).rejects.toMatchObject({ code: "engine.failed", errno });
      });
  });

  it("tells a missing image from a missing container", async () => {
    await withEngine(refuse(404, "No such image: nope:latest"), async (engine) => {
      await expect(engine.tagImage("nope", "other:x")).rejects.toMatchObject({ code: "image.missing" });
    });
    await withEngine(refuse(404, "No such container: c1"), async (engine) => {
      await expect(engine.startContainer("c1")).rejects.toMatchObject({ code: "engine.failed" });
      await expect(engine.openExec("c1", ["true"])).rejects.toMatchObject({ code: "sandbox.gone" });
    });
  });

  it("takes what is gone for killed and removed, and what is over for killed", async () => {
    await withEngine(refuse(404, "no such container"), async (engine) => {
      await engine.killContainer("c1");
      await engine.removeContainer("c1");
    });
    await withEngine(refuse(409, "is not running"), async (engine) => {
      await engine.killContainer("c1");
    });
  });

  it("waits for the end of a removal that is under way, and says how it failed", async () => {
    const answers: object[] = [{ StatusCode: 137 }, { StatusCode: 137, Error: { Message: "device busy" } }];
    const requests: string[] = [];
    const answer: Answer = (request, response) => {
      requests.push(`${request.method} ${request.url}`);
      if (request.method === "DELETE") return reply(response, 409, { message: "already in progress" });
      reply(response, 200, answers.shift() ?? {});
    };
    await withEngine(answer, async (engine) => {
      await engine.removeContainer("c1");
      expect(requests.at(-1)).toMatch(/POST \/v[\d.]+\/containers\/c1\/wait\?condition=removed$/);
      await expect(engine.removeContainer("c1")).rejects.toMatchObject({
        code: "engine.failed",
        message: expect.stringContaining("device busy"),
      });
    });
  });

  it("does not take other refusals of kill and remove for done", async () => {
    await withEngine(refuse(500, "busy"), async (engine) => {
      await expect(engine.killContainer("c1")).rejects.toMatchObject({ code: "engine.failed" });
      await expect(engine.removeContainer("c1")).rejects.toMatchObject({ code: "engine.failed" });
    });
  });

  it("gives null for what is gone", async () => {
    await withEngine(refuse(404, "no such thing"), async (engine) => {
      expect(await engine.inspectContainer("c1")).toBeNull();
      expect(await engine.inspectImage("a:b")).toBeNull();
      expect(await engine.inspectVolume("v")).toBeNull();
      await engine.removeVolume("v");
    });
  });

  it("reports an error that comes after a good beginning", async () => {
    const answer: Answer = (_request, response) => {
      response.writeHead(200);
      response.write('{"status":"Pulling from library/nope"}\n');
      response.end('{"error":"manifest unknown"}\n');
    };
    await withEngine(answer, async (engine) => {
      const lines: string[] = [];
      const pull = engine.pullImage("nope:1", { onProgress: (line) => lines.push(line) });
      await expect(pull).rejects.toMatchObject({
        code: "image.missing",
        message: expect.stringMatching(/manifest unknown/),
      });
      expect(lines).toEqual(["Pulling from library/nope"]);
    });
  });
});

describe("what a broken connection becomes", () => {
  it("is an unreachable engine when no answer comes", async () => {
    await withEngine(
      (request) => request.socket.destroy(),
      async (engine) => {
        await expect(engine.startContainer("c1")).rejects.toMatchObject({ code: "engine.unreachable" });
      },
    );
  });

  it("is an unreachable engine when the answer breaks off", async () => {
    const answer: Answer = (_request, response) => {
      response.writeHead(200, { "content-length": "1000" });
      response.write('{"Id":');
      setTimeout(() => response.socket?.destroy(), 20);
    };
    await withEngine(answer, async (engine) => {
      await expect(engine.inspectContainer("c1")).rejects.toMatchObject({ code: "engine.unreachable" });
      await expect(engine.waitContainer("c1")).rejects.toMatchObject({ code: "engine.unreachable" });
    });
  });

  it("does not blame the engine for a source that cannot be read", async () => {
    const answer: Answer = (request, response) => {
      request.on("end", () => reply(response, 200, {}));
    };
    await withEngine(answer, async (engine) => {
      const source = new Readable({ read: () => source.destroy(new Error("disk gone")) });
      await expect(engine.importImage(source, "x:y")).rejects.toThrow("disk gone");
    });
  });

  it("ends an unanswered call when its signal is aborted, with the signal's reason", async () => {
    await withEngine(
      () => undefined,
      async (engine) => {
        const reason = new Error("changed my mind");
        const controller = new AbortController();
        const waiting = engine.waitContainer("c1", { signal: controller.signal });
        setTimeout(() => controller.abort(reason), 20);
        await expect(waiting).rejects.toBe(reason);
      },
    );
  });
});

describe("requests", () => {
  it("never carry the body of a creation in the URL", async () => {
    await using fake = await fakeEngine((_request, response) => reply(response, 201, { Id: "c1" }));
    const engine = await connectEngine({
      env: readEnvironment({ HOME: "/proc/nonexistent" }),
      endpoint: fake.address,
    });
    await engine.createContainer({ Image: "a", Env: ["TOKEN=secret"] } as never, { name: "n" });
    expect(fake.requests.at(-1)).toBe("POST /containers/create?name=n");
  });
});
