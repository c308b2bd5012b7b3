import { createHash } from "node:crypto";
import { readdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, expect, it, onTestFinished } from "vitest";
import { openStore, S3Store, type StoredFile } from "../../../../../src/batch/queue/store.js";
import { describeObjectStore } from "../../../../contract/object-store.js";
import { temporaryFolder } from "../../../../support/batch-runs.js";
import { S3Server } from "../../../../support/s3-server.js";

async function startServer(): Promise<S3Server> {
  const server = await S3Server.start();
  onTestFinished(() => server[Symbol.asyncDispose]());
  return server;
}

const openBucket = (server: S3Server, given: Record<string, string> = {}) =>
  openStore("s3://bucket/some dir", { cwd: "/", variables: { ...server.variables, ...given } });

async function smallFile(): Promise<StoredFile> {
  const path = join(await temporaryFolder(), "file");
  await writeFile(path, "text");
  return { path, sizeBytes: 4, sha256: createHash("sha256").update("text").digest("hex") };
}

describeObjectStore("a directory", async () =>
  openStore("shared/results", { cwd: await temporaryFolder(), variables: {} }),
);

describeObjectStore("a bucket", async () => openBucket(await startServer()));

describe("a bucket", () => {
  it("has its objects below the prefix", async () => {
    const server = await startServer();
    const store = await openBucket(server);
    await store.put("a/b", await smallFile());
    expect([...server.objects.keys()]).toEqual(["/bucket/some%20dir/a/b"]);
  });

  it("takes objects of a server that knows no conditions", async () => {
    const server = await startServer();
    server.knowsConditions = false;
    const store = await openBucket(server);
    expect(await store.put("a/b", await smallFile())).toBe("stored");
    expect(await store.put("a/b", await smallFile())).toBe("present");
  });

  it("is asked again when the server is busy, and says so when it stays busy", async () => {
    const server = await startServer();
    const { AWS_REGION: region } = server.variables;
    const bucket = {
      bucketUrl: `${server.url}/bucket`,
      region: String(region),
      ...server.keys,
      sessionToken: undefined,
    };
    const store = new S3Store(bucket, { prefix: "", firstWaitMs: 1 });
    server.failures = 2;
    expect(await store.has("a/b")).toBe(false);
    server.failures = 1000;
    await expect(store.has("a/b")).rejects.toMatchObject({ code: "store.failed", message: /HTTP 503/ });
  });

  it("refuses other keys, which are not in the message", async () => {
    const store = await openBucket(await startServer(), { AWS_SECRET_ACCESS_KEY: "not-the-key" });
    const failure = await store.put("a/b", await smallFile()).catch((error: unknown) => error);
    expect(failure).toMatchObject({ code: "store.failed", message: /HTTP 403/ });
    expect(String(failure)).not.toContain("not-the-key");
  });
});

describe("a directory", () => {
  it("has nothing unfinished after objects were put", async () => {
    const folder = await temporaryFolder();
    const store = await openStore(folder, { cwd: "/", variables: {} });
    await Promise.all([store.put("a/b", await smallFile()), store.put("a/b", await smallFile())]);
    expect(await readdir(join(folder, "a"))).toEqual(["b"]);
  });

  it("that cannot be made is an error of the store", async () => {
    const folder = await temporaryFolder();
    await writeFile(join(folder, "file"), "");
    const opening = openStore(join(folder, "file/results"), { cwd: "/", variables: {} });
    await expect(opening).rejects.toMatchObject({ code: "store.failed", errno: "ENOTDIR" });
  });
});

describe("the address of a store", () => {
  it.each([
    ["s3://", {}, "neither a directory nor"],
    ["s3://UPPER/x", {}, "neither a directory nor"],
    ["gs://bucket", {}, "neither a directory nor"],
    ["s3://bucket", {}, "no keys"],
    [
      "s3://bucket",
      { AWS_ENDPOINT_URL: "storage", AWS_ACCESS_KEY_ID: "a", AWS_SECRET_ACCESS_KEY: "b" },
      "AWS_ENDPOINT_URL",
    ],
  ])("%s with %j is refused", async (address, variables, message) => {
    await expect(openStore(address, { cwd: "/", variables })).rejects.toMatchObject({
      code: "usage.invalid",
      message: expect.stringContaining(message),
    });
  });
});
