import { randomBytes } from "node:crypto";
import { once } from "node:events";
import { readFileSync } from "node:fs";
import { mkdir, mkdtemp, readdir, readFile, rm, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { execaNode } from "execa";
import { afterEach, beforeAll, beforeEach, describe, expect, it, onTestFinished } from "vitest";
import { openTaskImages, type TaskImagesOptions } from "../../../src/batch/runs/images/open-task-images.js";
import type { TaskImage } from "../../../src/batch/tasks/task.js";
import type { Engine } from "../../../src/sandbox/docker/engine-types.js";
import type { ImageProgress } from "../../../src/sandbox/images/dockerfile/image-builds.js";
import { ensureImages } from "../../../src/sandbox/images/ensure.js";
import { homeId } from "../../../src/sandbox/images/toolbox-volume.js";
import { containerBody } from "../../support/container-body.js";
import { testEngine } from "../../support/engine.js";
import { testLabels } from "../../support/test-run.js";

type BuiltImage = Extract<TaskImage, { kind: "build" }>;

let engine: Engine;
let base: string;
let directory: string;
let salt: string;

beforeAll(async () => {
  engine = await testEngine();
  ({ base } = await ensureImages(engine, { names: ["base"] }));
});
beforeEach(async () => {
  salt = randomBytes(8).toString("hex");
  directory = await mkdtemp(join(tmpdir(), "brig-task-image-"));
  onTestFinished(() => rm(directory, { recursive: true, force: true }));
});
afterEach(async () => {
  // Builds that failed leave images without names, from which others may have been made.
  for (let left = await ownImages(); left.length > 0; left = await ownImages())
    for (const { id, tags } of left)
      for (const name of tags.length > 0 ? tags : [id]) await engine.removeImage(name);
});

async function ownImages() {
  return await engine.listImages([`brig.test-image=${salt}`]);
}

/** Makes the content of a test's images its own, and lets them be found. */
const mark = () => `LABEL brig.test-image=${salt}`;

async function dockerfile(lines: string[], changes: Partial<BuiltImage> = {}): Promise<BuiltImage> {
  await writeFile(join(directory, "Dockerfile"), [`FROM ${base}`, mark(), ...lines, ""].join("\n"));
  return {
    kind: "build",
    context: directory,
    dockerfile: "Dockerfile",
    buildArgs: {},
    timeoutSec: 120,
    ...changes,
  };
}

function open(options: Partial<TaskImagesOptions> = {}) {
  const progress: ImageProgress[] = [];
  const images = openTaskImages({ engine, onProgress: (one) => progress.push(one), ...options });
  const ready = (image: TaskImage, signal?: AbortSignal) =>
    images.ready(image, { task: `test/${salt}`, signal });
  const built = () => progress.filter(({ stage, line }) => stage === "build" && line === undefined).length;
  return { ...images, ready, progress, built };
}

/** What a command in a new container of the image prints to a file that is read by its exit code. */
async function exitCodeOf(image: string, command: string): Promise<number> {
  const id = await engine.createContainer(
    containerBody(image, ["sh", "-c", command], { Labels: testLabels() }),
  );
  try {
    await engine.startContainer(id);
    return await engine.waitContainer(id);
  } finally {
    await engine.removeContainer(id);
  }
}

async function leftContainers(command: string): Promise<number> {
  const all = await engine.listContainers([]);
  const commands = await Promise.all(
    all.map(({ id }) =>
      engine
        .inspectCreated(id)
        .then(({ cmd }) => cmd.join(" "))
        .catch(() => ""),
    ),
  );
  return commands.filter((one) => one.includes(command)).length;
}

describe("the image of a task with a Dockerfile", () => {
  it("is built once for all who wait, and found again by content, in this run and in others", async () => {
    const image = await dockerfile(["COPY Dockerfile /made", "RUN touch /ran"]);
    const first = open();
    const all = await Promise.all([1, 2, 3, 4, 5].map(() => first.ready(image)));
    expect(first.built()).toBe(1);
    expect(new Set(all.map(({ id }) => id)).size).toBe(1);
    expect(all[0]?.id).toMatch(/^sha256:[0-9a-f]{64}$/);
    expect(all[0]?.reference).toMatch(/^brig-task:[0-9a-f]{32}$/);
    expect(await exitCodeOf(all[0]?.reference ?? "", "test -e /ran && test -e /made && exit 7")).toBe(7);

    const second = open();
    expect((await second.ready(image)).id).toBe(all[0]?.id);
    expect(second.built()).toBe(0);
    await writeFile(join(directory, "more"), "changes the content");
    expect((await second.ready(image)).id).toBe(all[0]?.id);
    expect((await open().ready(image)).reference).not.toBe(all[0]?.reference);
  });

  it("leaves what is marked when its build fails, and a later run of the same BRIG_HOME removes that", async () => {
    const label = "brig.unfinished-task-image";
    const [home, another] = [join(directory, "home"), join(directory, "another")];
    const { reference } = await open({ brigHome: home }).ready(await dockerfile(["RUN touch /one"]));
    expect((await engine.inspectImage(reference))?.labels[label]).toBe("");
    const broken = await dockerfile(["RUN touch /two", "RUN exit 3"]);
    await expect(open({ brigHome: home }).ready(broken)).rejects.toMatchObject({
      code: "image.build-failed",
    });
    const left = async () => (await ownImages()).filter(({ tags }) => tags.length === 0);
    expect((await left()).map(({ labels }) => labels[label])).toEqual([homeId(home)]);
    await open({ brigHome: another }).removeLeft();
    expect(await left()).toHaveLength(1);
    await open({ brigHome: home }).removeLeft();
    expect(await left()).toEqual([]);
    expect(await engine.inspectImage(reference)).not.toBeNull();
  });

  it("carries labels that say that brig made it, for which task and from what", async () => {
    const { reference } = await open().ready(await dockerfile([]));
    const baseImage = await engine.inspectImage(base);
    expect((await engine.inspectImage(reference))?.labels).toMatchObject({
      "brig.task-image": reference.split(":")[1],
      "brig.task": `test/${salt}`,
      "brig.task-bases": baseImage?.id,
    });
  });

  it("depends on build arguments and on what it is built from", async () => {
    const own = `brig-test-base:${salt}`;
    await engine.tagImage(base, own);
    onTestFinished(() => engine.removeImage(own));
    const image = await dockerfile([]);
    await writeFile(join(directory, "Dockerfile"), `FROM ${own}\nARG WORD\n${mark()}\nENV WORD=$WORD\n`);
    const plain = await open().ready(image);
    const withWord = await open().ready({ ...image, buildArgs: { WORD: "one" } });
    expect(withWord.reference).not.toBe(plain.reference);
    expect((await engine.inspectImage(withWord.reference))?.env).toContain("WORD=one");
    await engine.tagImage(plain.id, own);
    expect((await open().ready(image)).reference).not.toBe(plain.reference);
  });

  it("gets links as links and modes as they are, owned by root", async () => {
    await mkdir(join(directory, "data"));
    await writeFile(join(directory, "data/tool"), "#!/bin/sh\nexit 5\n", { mode: 0o755 });
    await symlink("/etc/hostname", join(directory, "data/link"));
    await writeFile(join(directory, ".dockerignore"), "data/secret\nDockerfile\n");
    await writeFile(join(directory, "data/secret"), "left out");
    const { reference } = await open().ready(await dockerfile(["COPY . /all/"]));
    const checks = [
      'test "$(readlink /all/data/link)" = /etc/hostname',
      "test ! -e /all/data/secret",
      "test ! -e /all/Dockerfile",
      "test $(stat -c %u:%g /all/data/tool) = 0:0",
      "/all/data/tool",
    ];
    expect(await exitCodeOf(reference, checks.join(" && "))).toBe(5);
  });

  it("that fails says so with the last lines of its log, to each who waits, and is tried again later", async () => {
    const image = await dockerfile(["RUN echo the reason; exit 3"]);
    const { ready, built } = open();
    const outcomes = await Promise.allSettled([ready(image), ready(image)]);
    for (const one of outcomes)
      expect(one).toMatchObject({
        status: "rejected",
        reason: {
          code: "image.build-failed",
          message: expect.stringMatching(
            new RegExp(`^building the image of the task test/${salt} failed: [^]*the reason`),
          ),
        },
      });
    expect(built()).toBe(1);
    await expect(ready(image)).rejects.toThrow("the reason");
    expect(built()).toBe(2);
  });

  it("that takes longer than its limit is ended, and leaves no container", async () => {
    const wait = `sleep 1000 # ${salt}`;
    const image = await dockerfile([`RUN ${wait}`], { timeoutSec: 3 });
    await expect(open().ready(image)).rejects.toMatchObject({
      code: "image.build-failed",
      message: expect.stringContaining(
        `building the image of the task test/${salt} took longer than its limit`,
      ),
    });
    await expect.poll(() => leftContainers(wait)).toBe(0);
  });

  it("that nobody waits for any more is ended, and only then", async () => {
    const wait = `sleep 1000 # ${salt}`;
    const image = await dockerfile([`RUN echo begun; ${wait}`]);
    const { ready, progress } = open();
    const [first, second] = [new AbortController(), new AbortController()];
    const waits = [first, second].map(({ signal }) =>
      ready(image, signal).catch((error: Error) => error.message),
    );
    await expect.poll(() => progress.some(({ line }) => line === "begun")).toBe(true);
    first.abort(new Error("first leaves"));
    expect(await waits[0]).toBe("first leaves");
    expect(await leftContainers(wait)).toBe(1);
    second.abort(new Error("second leaves"));
    expect(await waits[1]).toBe("second leaves");
    await expect.poll(() => leftContainers(wait)).toBe(0);
  });

  it("is built by BuildKit where its Dockerfile needs that, heredocs on older engines included", async () => {
    await writeFile(join(directory, "script"), "#!/bin/sh\necho copied\n");
    const image = await dockerfile([
      "USER 0",
      "RUN --mount=type=cache,target=/x test -d /x && echo cached > /result",
      "COPY --link --chmod=755 script /bin/",
      "RUN <<EOF",
      "script >> /result",
      'false || echo "at home: $HOME" >> /result',
      "EOF",
      "RUN <<run.sh",
      "#!/bin/sh -e",
      'echo "$0" >> /result',
      "run.sh",
      "RUN cat <<-'END' >> /result",
      "\t$HOME",
      "\tEND",
      'COPY --chmod=600 <<"a" <<b.txt /copied/',
      "$HOME",
      "a",
      "plain",
      "b.txt",
      "RUN cat /copied/* >> /result && stat -c %a /copied/a >> /result",
    ]);
    const path = join(directory, "Dockerfile");
    await writeFile(path, `# syntax=localhost:1/nothing\n${await readFile(path, "utf8")}`);
    const { ready, progress } = open();
    const { reference } = await ready(image);
    const expected = [
      "cached",
      "copied",
      "at home: /root",
      "/dev/pipes/run.sh",
      "$HOME",
      "$HOME",
      "plain",
      "600",
    ];
    const printed = `printf '%s\\n' ${expected.map((line) => `'${line}'`).join(" ")}`;
    expect(await exitCodeOf(reference, `${printed} | diff - /result`)).toBe(0);
    expect(progress.some(({ line }) => /RUN --mount=type=cache/.test(line ?? ""))).toBe(true);
  });

  it("keeps files of its context whose names are those of written heredocs", async () => {
    const line = ["COPY --chmod=600 <<EOF /written", "written", "EOF"];
    const image = await dockerfile([...line, "COPY .brig-heredocs /own"]);
    const below = join(directory, ".brig-heredocs/3");
    await mkdir(below, { recursive: true });
    await writeFile(join(below, "EOF"), "own\n");
    const { reference } = await open().ready(image);
    const command = 'test "$(cat /written)" = written && test "$(cat /own/3/EOF)" = own && exit 7';
    expect(await exitCodeOf(reference, command)).toBe(7);

    await rm(join(directory, ".brig-heredocs"), { recursive: true });
    await writeFile(join(directory, ".brig-heredocs"), "own\n");
    const second = await open().ready(image);
    const compare = 'test "$(cat /written)" = written && test "$(cat /own)" = own && exit 7';
    expect(await exitCodeOf(second.reference, compare)).toBe(7);
  });

  it("whose command fails in BuildKit shows what it printed", async () => {
    const image = await dockerfile(["RUN --mount=type=cache,target=/x echo its words; exit 3"]);
    const { ready, progress } = open();
    await expect(ready(image)).rejects.toMatchObject({
      code: "image.build-failed",
      message: expect.stringMatching(
        /^building the image of the task .* failed: .*exit code: 3\n.*its words/s,
      ),
    });
    expect(progress.some(({ line }) => line === "its words")).toBe(true);
  });

  it("that BuildKit cannot read names its lines", async () => {
    const image = await dockerfile(["RUN --mount=type=nothing true"]);
    await expect(open().ready(image)).rejects.toMatchObject({
      code: "image.build-failed",
      message: expect.stringContaining("type"),
    });
  });

  it("ends in BuildKit when nobody waits for it, or its time is over", async () => {
    const seconds = `6${Date.now() % 100_000}.25`;
    const isSleeping = async () =>
      (await readdir("/proc")).some((pid) => {
        try {
          return readFileSync(`/proc/${pid}/cmdline`, "utf8") === `sleep\0${seconds}\0`;
        } catch {
          return false;
        }
      });
    const lines = [`RUN --mount=type=cache,target=/x echo begun; exec sleep ${seconds}`];
    const { ready, progress } = open();
    const stop = new AbortController();
    const waiting = ready(await dockerfile(lines), stop.signal).catch((error: Error) => error.message);
    await expect.poll(() => progress.some(({ line }) => line === "begun"), { timeout: 20_000 }).toBe(true);
    // The shell says so before it becomes the program.
    await expect.poll(isSleeping, { timeout: 10_000 }).toBe(true);
    stop.abort(new Error("enough"));
    expect(await waiting).toBe("enough");
    await expect.poll(isSleeping, { timeout: 10_000 }).toBe(false);
    await expect(open().ready(await dockerfile(lines, { timeoutSec: 2 }))).rejects.toMatchObject({
      message: expect.stringMatching(/took longer than its limit of 2 seconds/),
    });
    await expect.poll(isSleeping, { timeout: 10_000 }).toBe(false);
  });

  it("has no network in BuildKit either when nothing may be fetched", async () => {
    const image = await dockerfile(["RUN --mount=type=cache,target=/x test ! -e /sys/class/net/eth0"]);
    await expect(open().ready(image)).rejects.toMatchObject({ code: "image.build-failed" });
    await open({ isOffline: true }).ready(image);
  });

  it("is built for the engine's own platform where it asks for that by BuildKit's variables", async () => {
    const image = await dockerfile([]);
    const lines = [
      `FROM --platform=$BUILDPLATFORM ${base}`,
      mark(),
      "ARG TARGETARCH",
      "ENV ARCH=$TARGETARCH",
      "",
    ];
    await writeFile(join(directory, "Dockerfile"), lines.join("\n"));
    const { reference } = await open().ready(image);
    expect((await engine.inspectImage(reference))?.env).toContain(`ARCH=${engine.arch}`);
  });

  it("is built without a network when nothing may be fetched", async () => {
    const image = await dockerfile(["RUN test ! -e /sys/class/net/eth0"]);
    await expect(open().ready(image)).rejects.toMatchObject({ code: "image.build-failed" });
    await open({ isOffline: true }).ready(image);
    const fetches = await dockerfile(["RUN test -e /sys/class/net/eth0"]);
    await expect(open({ isOffline: true }).ready(fetches)).rejects.toMatchObject({
      hint: expect.stringContaining("with --offline a build has no network"),
    });
  });

  it("is built once by two processes at the same time", async () => {
    const image = await dockerfile(["RUN sleep 1 && head -c 16 /dev/urandom > /chance"]);
    const program = join(import.meta.dirname, "../../fixtures/ready-image.ts");
    const runs = [1, 2].map(() =>
      execaNode(program, [JSON.stringify(image), `test/${salt}`], { nodeOptions: ["--import", "tsx"] }),
    );
    const answers = (await Promise.all(runs)).map(({ stdout }) => JSON.parse(stdout));
    expect(answers[0].id).toBe(answers[1].id);
    expect(answers.map(({ builds }) => builds).toSorted()).toEqual([0, 1]);
  });

  it("is built by the next after a process was killed in the middle", async () => {
    const flag = join(directory, "slow");
    const image = await dockerfile(["COPY . /all/", `RUN test -e /all/fast || sleep 1000 # ${salt}`]);
    await writeFile(flag, "");
    const program = join(import.meta.dirname, "../../fixtures/ready-image.ts");
    const killed = execaNode(program, [JSON.stringify(image), `test/${salt}`], {
      nodeOptions: ["--import", "tsx"],
      reject: false,
    });
    let log = "";
    killed.stderr.on("data", (chunk) => {
      log += chunk;
    });
    await expect.poll(() => log).toContain("Running in");
    killed.kill("SIGKILL");
    await once(killed, "exit");
    await expect.poll(() => leftContainers(salt)).toBe(0);
    await writeFile(join(directory, "fast"), "");
    const { ready, built } = open();
    const { reference } = await ready(image);
    expect(built()).toBe(1);
    expect(await exitCodeOf(reference, "test -e /all/slow && exit 4")).toBe(4);
  });
});

describe("the image of a task with a reference", () => {
  it("is found on the engine, also under an alias, and by the alias in a Dockerfile", async () => {
    const id = (await engine.inspectImage(base))?.id;
    const aliases = { "python:3.12-slim": base, "docker.io/library/ubuntu:latest": base };
    const { ready } = open({ aliases, isOffline: true });
    expect(await ready({ kind: "reference", reference: base })).toMatchObject({ id, reference: base });
    for (const reference of [
      "docker.io/library/python:3.12-slim",
      "ubuntu",
      "index.docker.io/library/ubuntu:latest",
    ])
      expect(await ready({ kind: "reference", reference })).toMatchObject({ id, reference: base });
    const image = await dockerfile([]);
    await writeFile(join(directory, "Dockerfile"), `FROM python:3.12-slim AS one\n${mark()}\nFROM one\n`);
    const task = await ready(image);
    expect((await engine.inspectImage(task.reference))?.labels["brig.test-image"]).toBe(salt);
  });

  it("that would have to be pulled is named before anything runs, when nothing may be pulled", async () => {
    const aliases = { "three:1": "registry.invalid/three:1" };
    const { ready, requireLocal } = open({ aliases, isOffline: true });
    const image = await dockerfile([]);
    await writeFile(join(directory, "Dockerfile"), `FROM brig-test-absent/two:1\nCOPY --from=three:1 /a /\n`);
    const wanted: TaskImage[] = [
      { kind: "reference", reference: base },
      { kind: "reference", reference: "brig-test-absent/one:1" },
      image,
    ];
    await expect(requireLocal(wanted)).rejects.toMatchObject({
      code: "image.missing",
      message: [
        "3 images are not on the engine, and --offline forbids to pull",
        "  brig-test-absent/one:1",
        "  brig-test-absent/two:1",
        "  registry.invalid/three:1",
      ].join("\n"),
    });
    await expect(ready(image)).rejects.toMatchObject({
      code: "image.missing",
      message: "the image brig-test-absent/two:1 is not on the engine, and --offline forbids to pull",
    });
    await requireLocal(wanted.slice(0, 1));
  });

  it("that no registry has is missing, with the engine's reason", async () => {
    const { ready, requireLocal } = open();
    const image: TaskImage = { kind: "reference", reference: "localhost:1/brig-absent/none:1" };
    await requireLocal([image]);
    await expect(ready(image)).rejects.toThrow(/cannot pull the image localhost:1\/brig-absent\/none:1/);
  });
});

describe("all images of a run", () => {
  it("are made before it begins, each once, and all that fail are named", async () => {
    const good = await dockerfile([]);
    const wanted = [
      { task: `one/${salt}`, image: good },
      { task: `two/${salt}`, image: good },
      { task: "three", image: { ...good, dockerfile: "absent" } },
      { task: "four", image: { kind: "reference", reference: "brig-test-absent/one:1" } as const },
    ];
    const { prebuild, built } = open({ isOffline: true });
    const settled: string[] = [];
    const failed = await prebuild(wanted, {
      onSettled: (outcome) => settled.push(`${outcome.task} ${"error" in outcome}`),
    });
    expect(failed.map(({ task }) => task).toSorted()).toEqual(["four", "three"]);
    expect(failed.map(({ error }) => (error as { code: string }).code).toSorted()).toEqual([
      "image.build-failed",
      "image.missing",
    ]);
    expect(settled.toSorted()).toEqual(["four true", `one/${salt} false`, "three true", `two/${salt} false`]);
    expect(built()).toBe(1);
  });
});
