import { createHash } from "node:crypto";
import { once } from "node:events";
import { fileURLToPath } from "node:url";
// @ts-expect-error -- a plain script without types
import { provideDebian } from "../../scripts/setup/debian-image.js";
import { isBrigError } from "../../src/errors.js";
import { Demultiplexer } from "../../src/sandbox/channel/frames.js";
import { packTar, type TarFile } from "../../src/sandbox/docker/calls/tar.js";
import type { Engine } from "../../src/sandbox/docker/engine-types.js";
import { completeFiles, readBuildContext } from "../../src/sandbox/images/build-context.js";
import type { ImageDefinition } from "../../src/sandbox/images/definition.js";
import { withLock } from "../../src/sandbox/images/lock.js";
import { ripgrepFile } from "../../src/sandbox/images/npm-packages.js";
import { ensureToolboxVolume } from "../../src/sandbox/images/toolbox-volume.js";
import type { Sandbox } from "../../src/sandbox/sandbox.js";
import { containerBody } from "./container-body.js";
import { runnerSeeds } from "./runner-seeds.js";
import { testLabels } from "./test-run.js";

/** Where the sanitizers of the watched runner write what they find, a file per process: see its test/asan/options.c. */
const reports = { directory: "/tmp", prefix: "asan." };

/** A toolbox volume whose runner the address and undefined-behaviour sanitizers watch. Builds it when it is missing. */
export async function watchedToolbox(engine: Engine): Promise<string> {
  return await ensureToolboxVolume(engine, await buildRunner(engine, { name: "asan", files: [] }));
}

/** What the sanitizers have found in this sandbox so far; empty when it is gone: then its own calls have failed. */
export async function sanitizerFindings(sandbox: Sandbox): Promise<string> {
  try {
    const entries = await sandbox.files.list(reports.directory);
    const found = entries.filter(({ name }) => name.startsWith(reports.prefix));
    const texts = found.map(({ name }) => sandbox.files.read(`${reports.directory}/${name}`));
    return Buffer.concat(await Promise.all(texts)).toString();
  } catch (error) {
    if (isBrigError(error, "sandbox.gone")) return "";
    throw error;
  }
}

/** The image with the runner's fuzz targets and native tests in /checks. Builds it when it is missing. */
export async function runnerChecks(engine: Engine): Promise<string> {
  return await buildRunner(engine, { name: "fuzz", files: runnerSeeds() });
}

async function buildRunner(
  engine: Engine,
  { name, files }: { name: "asan" | "fuzz"; files: TarFile[] },
): Promise<string> {
  const { arch } = await engine.info();
  const context = await readBuildContext(definition(name), arch);
  const tag = files.length === 0 ? context.tag : `${context.tag}-${contentHash(files)}`;
  await withLock(tag, async () => {
    if ((await engine.inspectImage(tag)) !== null) return;
    await engine.buildImage(packTar([...(await completeFiles(context)), ...files]), {
      tag,
      dockerfile: `runner/test/${name}/Dockerfile`,
      buildArgs: { PARENT: await provideDebian(engine, { arch }) },
      labels: { "brig.image": `test-runner-${name}` },
    });
  });
  return tag;
}

function contentHash(files: TarFile[]): string {
  const hash = createHash("sha256");
  for (const { path, content } of files) hash.update(`${path}\0${content.length}\0`).update(content);
  return hash.digest("hex").slice(0, 12);
}

function definition(name: "asan" | "fuzz"): ImageDefinition {
  return {
    name: "toolbox",
    repository: `brig/test-runner-${name}`,
    directory: fileURLToPath(new URL("../../images/toolbox", import.meta.url)),
    isPart: (path) =>
      /^(hosts|resolv\.conf)$|^runner\/test\/.*$|^(runner|runner-files|common|apply-patch|attempts)\/[^/]+\.[ch]$/.test(
        path,
      ),
    packageFiles: name === "asan" ? [ripgrepFile] : [],
    hasMovingTag: false,
  };
}

/** A container of an image that is there for the commands run in it. */
export interface CheckContainer extends AsyncDisposable {
  run(argv: string[]): Promise<{ exitCode: number; output: string }>;
}

export async function openCheckContainer(engine: Engine, image: string): Promise<CheckContainer> {
  const id = await engine.createContainer(
    containerBody(image, ["sleep", "3600"], {
      Labels: testLabels(),
      host: {
        AutoRemove: true,
        // For the leak check at the end of a run, which stops the process to look at its memory; and for tests that make a PID namespace.
        CapAdd: ["SYS_PTRACE", "SYS_ADMIN"],
        SecurityOpt: ["apparmor=unconfined"],
        Tmpfs: { "/tmp": "rw,exec,size=512m" },
        Init: true,
      },
    }),
  );
  await engine.startContainer(id);
  return {
    run: (argv) => run(engine, id, argv),
    async [Symbol.asyncDispose]() {
      await engine.removeContainer(id);
    },
  };
}

async function run(
  engine: Engine,
  id: string,
  argv: string[],
): Promise<{ exitCode: number; output: string }> {
  const exec = await engine.openExec(id, argv);
  const demultiplexer = new Demultiplexer();
  const pieces: Buffer[] = [];
  exec.stream.on("data", (chunk: Buffer) =>
    demultiplexer.push(chunk, (data) => pieces.push(Buffer.from(data))),
  );
  exec.stream.end();
  await once(exec.stream, "close");
  let state = await exec.inspect();
  while (state.running) state = await exec.inspect();
  return { exitCode: state.exitCode ?? -1, output: Buffer.concat(pieces).toString() };
}
