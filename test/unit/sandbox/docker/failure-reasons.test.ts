import { describe, expect, it } from "vitest";
import { BrigError } from "../../../../src/errors.js";
import { readEnvironment } from "../../../../src/lib/env.js";
import { connectEngine } from "../../../../src/sandbox/docker/connect.js";
import { unixEndpoint } from "../../../../src/sandbox/docker/endpoint.js";
import {
  asRefusal,
  engineFailure,
  isDefiniteFailure,
  RefusedRequest,
  reason,
  streamedFailure,
} from "../../../../src/sandbox/docker/engine-failure.js";

const failed = (code: string) => Object.assign(new Error("words"), { code });
const context = { doing: "start", address: "unix:///x" };

describe("why an engine does not answer", () => {
  it.each([
    ["ENOENT", "no such socket"],
    ["ECONNREFUSED", "connection refused"],
    ["EACCES", "permission denied"],
    ["ECONNRESET", "it closed the connection"],
    ["EPIPE", "it closed the connection"],
    ["ENOTFOUND", "unknown host"],
    ["ETIMEDOUT", "timed out"],
    ["EOTHER", "words"],
  ])("is said in a few words: %s", (code, words) => {
    expect(reason(failed(code))).toBe(words);
    expect(engineFailure(failed(code), context)).toMatchObject({
      code: "engine.unreachable",
      message: `cannot start: the container engine at unix:///x does not answer (${words})`,
      hint: expect.stringMatching(/brig doctor/),
    });
  });

  it.each(["EMFILE", "ENFILE"])(
    "is %s of this machine, where starting an engine would not help",
    async (code) => {
      const lacking = {
        code: "engine.unreachable",
        hint: expect.stringMatching(/^allow more open files.*ulimit -n/),
      };
      expect(engineFailure(failed(code), context)).toMatchObject(lacking);
      const endpoint = {
        ...unixEndpoint("/x"),
        get socketPath(): string {
          throw failed(code);
        },
      };
      for (const isChosen of [true, false]) {
        const sources = [async () => [{ endpoint, origin: "a test", isChosen }]];
        const failure = connectEngine({ env: readEnvironment({ HOME: "/nowhere" }), sources });
        await expect(failure).rejects.toMatchObject(lacking);
        await expect(failure).rejects.toThrow("no file descriptors left");
      }
    },
  );

  it("is a time limit, the code of an error without words, or whatever was thrown", () => {
    expect(reason(Object.assign(new Error("x"), { name: "TimeoutError" }))).toBe("timed out");
    expect(reason(Object.assign(new Error(""), { code: "EOTHER" }))).toBe("EOTHER");
    expect(reason("thrown")).toBe("thrown");
  });
});

describe("whether an engine certainly did nothing", () => {
  const caused = (cause: unknown) => new BrigError("x", { code: "engine.failed", cause });

  it.each([
    [new RefusedRequest(500, "no"), true],
    [failed("ENOENT"), true],
    [failed("ECONNREFUSED"), true],
    [failed("EACCES"), true],
    [failed("ECONNRESET"), false],
    [failed("ETIMEDOUT"), false],
    [new Error("x"), false],
  ])("%s: %s, also as the cause of brig's own error", (error, expected) => {
    expect(isDefiniteFailure(error)).toBe(expected);
    expect(isDefiniteFailure(caused(error))).toBe(expected);
  });

  it("is certain when brig itself refused", () => {
    for (const code of ["policy.not-enforced", "image.missing"] as const)
      expect(isDefiniteFailure(new BrigError("x", { code, hint: "y" }))).toBe(true);
  });
});

describe("a refusal", () => {
  it("is one of what is missing, also where Podman loses it while it answers", () => {
    const answer = (cause: unknown) => JSON.stringify({ cause, message: "no such container", response: 500 });
    for (const cause of ["no such container", "no such volume"])
      expect(new RefusedRequest(500, answer(cause)).status).toBe(404);
    for (const body of [answer("no space left on device"), answer(null), "[]", "no such container"])
      expect(new RefusedRequest(500, body).status).toBe(500);
  });

  it("has the message of a JSON body, or the body", () => {
    const wordsOf = (body: string) => new RefusedRequest(400, body).words;
    expect(wordsOf('{"message":" busy\\n"}')).toBe("busy");
    expect(wordsOf('{"message":5}')).toBe('{"message":5}');
    expect(wordsOf('{"words":"x"}')).toBe('{"words":"x"}');
    expect(wordsOf("null")).toBe("null");
    expect(wordsOf('"text"')).toBe('"text"');
    expect(new RefusedRequest(418, "tea")).toMatchObject({ message: "tea (HTTP 418)", status: 418 });
    expect(asRefusal(new Error("x"))).toBe(null);
  });

  it("that is long is shortened in the middle, and only then", () => {
    const wordsOf = (length: number) => new RefusedRequest(400, `${"a".repeat(length - 3)}end`).words;
    expect(wordsOf(1000)).toHaveLength(1000);
    expect(wordsOf(1001)).toBe(`${"a".repeat(800)} … ${"a".repeat(197)}end`);
  });

  it("for want of an image is told from others by its words and its status", () => {
    for (const words of ["No such image: x", "image not known", "manifest unknown", "pull access denied"]) {
      expect(engineFailure(new RefusedRequest(404, words), context)).toMatchObject({ code: "image.missing" });
      expect(engineFailure(new RefusedRequest(500, words), context)).toMatchObject({ code: "engine.failed" });
    }
    expect(engineFailure(new RefusedRequest(404, "no such volume"), context)).toMatchObject({
      code: "engine.failed",
    });
  });

  it("that comes in a stream is told in the same way", () => {
    for (const words of [
      "manifest unknown",
      "x not found",
      "pull access denied",
      "repository does not exist",
    ])
      expect(streamedFailure(words, "pull")).toMatchObject({ code: "image.missing", errno: undefined });
    expect(streamedFailure("write: no space left on device", "pull")).toMatchObject({
      ...{ code: "engine.failed", errno: "ENOSPC", message: "cannot pull: write: no space left on device" },
    });
  });

  it("is nothing new where brig has refused", () => {
    const own = new BrigError("x", { code: "usage.invalid" });
    expect(engineFailure(own, context)).toBe(own);
    expect(engineFailure(new SyntaxError("x"), context)).toMatchObject({ code: "engine.failed" });
  });
});
