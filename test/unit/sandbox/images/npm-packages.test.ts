import { createHash } from "node:crypto";
import { chmod, mkdir, mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { delimiter, join } from "node:path";
import { execa } from "execa";
import { beforeEach, describe, expect, it, onTestFinished, vi } from "vitest";
import { completeFiles, readBuildContext } from "../../../../src/sandbox/images/build-context.js";
import { imageDefinitions } from "../../../../src/sandbox/images/definition.js";
import { type NpmPackage, readPackageFile } from "../../../../src/sandbox/images/npm-packages.js";

const content = "what the registry sends";
const integrityOf = (bytes: string | Uint8Array) =>
  `sha512-${createHash("sha512").update(bytes).digest("base64")}`;
const integrity = integrityOf(content);
const wanted: NpmPackage = { name: "brig-example", version: "1.0.0", integrity };
const archive = { path: "example.tgz", packages: {} };

let directory: string;

/** An npm that packs what the test says, in place of the registry's. */
async function npmThat(script: string): Promise<void> {
  await writeFile(join(directory, "npm"), `#!/bin/sh\n${script}\n`);
  await chmod(join(directory, "npm"), 0o755);
}

beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), "brig-test-"));
  onTestFinished(() => rm(directory, { recursive: true }));
  vi.stubEnv("PATH", `${directory}${delimiter}${process.env.PATH}`);
});

describe("a file from the npm registry", () => {
  it("is what npm fetched when its hash is the one that brig was released with", async () => {
    await npmThat(`printf '${content}' > example.tgz; echo example.tgz`);
    expect(Buffer.from(await readPackageFile(archive, wanted)).toString()).toBe(content);
  });

  it("can be one file of the package, which is executable", async () => {
    await mkdir(join(directory, "package/bin"), { recursive: true });
    await writeFile(join(directory, "package/bin/rg"), "a program");
    await execa("tar", ["-czf", "example.tgz", "package"], { cwd: directory });
    await npmThat(`cp ${directory}/example.tgz . && echo example.tgz`);
    const packed = await readFile(join(directory, "example.tgz"));
    const file = { path: "rg", member: "package/bin/rg" };
    const rg: NpmPackage = { ...wanted, integrity: integrityOf(packed) };
    const definition = {
      ...imageDefinitions.engine,
      packageFiles: [{ ...file, packages: { amd64: rg } }],
    };
    const files = await completeFiles(await readBuildContext(definition, "amd64"));
    expect(files.at(-1)).toEqual({ path: "rg", mode: 0o755, content: Buffer.from("a program") });
  });

  it("is refused when its hash is another", async () => {
    await npmThat("printf 'something else' > example.tgz; echo example.tgz");
    await expect(readPackageFile(archive, wanted)).rejects.toMatchObject({
      code: "image.build-failed",
      message: expect.stringContaining("brig-example@1.0.0"),
      hint: expect.stringContaining(integrity),
    });
  });

  it("says how to try it when npm cannot fetch it", async () => {
    await npmThat("exit 1");
    await expect(readPackageFile(archive, wanted)).rejects.toMatchObject({
      code: "image.build-failed",
      hint: expect.stringContaining("npm pack brig-example@1.0.0"),
    });
  });

  it("is given up when the build is", async () => {
    await npmThat("exec sleep 60");
    const interruption = new AbortController();
    const reading = readPackageFile(archive, wanted, interruption.signal);
    interruption.abort(new Error("enough"));
    await expect(reading).rejects.toThrow("enough");
  });
});

it("every file of an image is named for both architectures, with its hash", () => {
  const packages = Object.values(imageDefinitions)
    .flatMap(({ packageFiles }) => packageFiles)
    .flatMap((file) => ["amd64", "arm64"].map((arch) => file.packages[arch]));
  expect(packages.length).toBeGreaterThan(4);
  for (const each of packages) expect(each?.integrity).toMatch(/^sha512-[A-Za-z0-9+/]{86}==$/);
});
