import { randomBytes } from "node:crypto";
import { chmod, mkdir, readdir } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { afterAll, beforeAll, describe, expect } from "vitest";
import { packTar } from "../../src/sandbox/docker/calls/tar.js";
import type { Engine } from "../../src/sandbox/docker/engine-types.js";
import { promised } from "../guarantees.js";
import { containerBody } from "../support/container-body.js";
import { testEngine } from "../support/engine.js";
import { becomeHostUser, HOST_USERS } from "../support/host-users.js";
import { differs, isPodman, titled } from "../support/runtime-differences.js";
import { sandboxTest } from "../support/sandbox.js";
import { testLabels } from "../support/test-run.js";

let engine: Engine;
const tags: string[] = [];

beforeAll(async () => {
  engine = await testEngine();
});
afterAll(async () => {
  for (const tag of tags) await engine.removeImage(tag);
});

/** An image as brig/base, with these lines of a Dockerfile. */
async function imageWith(...lines: string[]): Promise<string> {
  const tag = `brig-test/metadata:${randomBytes(6).toString("hex")}`;
  const dockerfile = Buffer.from(["FROM brig/base", ...lines, ""].join("\n"));
  tags.push(tag);
  await engine.buildImage(packTar([{ path: "Dockerfile", mode: 0o644, content: dockerfile }]), { tag });
  return tag;
}

/** A container of the image as `docker run` would make it, with a directory of the host's. */
async function plainContainer(image: string, directory: string): Promise<AsyncDisposable> {
  const id = await engine.createContainer(
    containerBody(image, ["sleep", "600"], {
      Labels: testLabels(),
      host: { Mounts: [{ Type: "bind", Source: directory, Target: directory, ReadOnly: false }] },
    }),
  );
  await engine.startContainer(id);
  return { [Symbol.asyncDispose]: async () => await engine.removeContainer(id) };
}

async function until(isSo: () => Promise<boolean>): Promise<void> {
  while (!(await isSo())) await sleep(20);
}

describe("a health check of the image", () => {
  const name = titled("image.health-check", "never runs, as it would in a plain container, for uid $uid");
  sandboxTest.skipIf(differs("image.health-check")).for(HOST_USERS)(
    promised("contained.image", name),
    async (user, { open, directory }) => {
      const [plain, boxed] = [join(directory, "plain"), join(directory, "boxed")];
      for (const path of [plain, boxed]) {
        await mkdir(path);
        await chmod(path, 0o777);
      }
      const image = await imageWith(
        `HEALTHCHECK --interval=20ms CMD for d in ${plain} ${boxed}; do mktemp $d/ran-XXXXXX; done`,
      );
      becomeHostUser(user);
      const sandbox = await open({ image, workspaceKind: "none", addDirs: [boxed] });
      await using _ = await plainContainer(image, plain);
      await until(async () => (await readdir(plain)).length >= 5);
      expect((await sandbox.exec(["touch", join(boxed, "by-command")])).exitCode).toBe(0);
      expect((await readdir(boxed)).filter((name) => !name.startsWith("."))).toEqual(["by-command"]);
    },
  );
});

describe("the environment of the image", () => {
  sandboxTest("reaches commands, but for what runs by itself", async ({ open }) => {
    const image = await imageWith(
      "RUN echo 'echo bash-env ran' > /etc/bash-env",
      "ENV BASH_ENV=/etc/bash-env ENV=/etc/bash-env LD_PRELOAD=/etc/none.so LD_AUDIT=/etc/none.so",
      "ENV NODE_OPTIONS=--require=/etc/none.js GLIBC_TUNABLES=glibc.malloc.check=3 PROMPT_COMMAND=date",
      "ENV JAVA_HOME=/opt/java PATH=/opt/java/bin:/usr/bin:/bin LANG=de_DE.UTF-8 HOME=/etc EMPTY=",
      "ENV LD_LIBRARY_PATH=/opt/cuda/lib",
    );
    const sandbox = await open({ image, env: { MINE: "1" } });
    const { stdout } = await sandbox.exec(["bash", "-c", "env | grep -v -e ^_= -e ^SHLVL="]);
    // Podman 4 gives every container a TERM, with a terminal or without.
    const variables = stdout.trim().split("\n");
    expect(variables.filter((line) => !isPodman || line !== "TERM=xterm").toSorted()).toEqual([
      "EMPTY=",
      "HOME=/home/brig",
      "HOSTNAME=brig",
      "JAVA_HOME=/opt/java",
      "LANG=de_DE.UTF-8",
      "LD_LIBRARY_PATH=/opt/cuda/lib",
      "MINE=1",
      "PATH=/opt/java/bin:/usr/bin:/bin:/.brig/bin",
      `PWD=${sandbox.workingDirectory}`,
      ...(isPodman ? ["container=podman"] : []),
    ]);
  });
});

describe("a volume of the image", () => {
  sandboxTest("is an empty directory in memory, of a part of what the policy allows", async ({ open }) => {
    const image = await imageWith(
      "RUN mkdir -p /srv/db && touch /srv/db/of-the-image",
      "VOLUME /data /srv/db/",
      "HEALTHCHECK --interval=20ms CMD touch /data/ran",
    );
    const sandbox = await open({ image });
    const { stdout } = await sandbox.exec([
      "sh",
      "-c",
      "touch /data/x && stat -f -c %T /data /srv/db; ls /data /srv/db",
    ]);
    expect(stdout).toMatch(/^tmpfs\ntmpfs\n\/data:\nx\n\n\/srv\/db:\n/);
    const sizes = await sandbox.exec(["df", "-B1", "--output=size", "/tmp", "/data", "/srv/db"]);
    const [tmp = 0, data = 0, db = 0] = sizes.stdout.split("\n").slice(1).map(Number);
    expect([data, db]).toEqual([tmp / 2, tmp / 2]);
    const program = "cp /bin/true /data/program; chmod +x /data/program; /data/program";
    expect((await sandbox.exec(["sh", "-c", program])).exitCode).toBe(126);
    const mounts = (await sandbox.exec(["grep", "-c", " /data ", "/proc/self/mountinfo"])).stdout;
    expect(mounts).toBe("1\n");
  });

  sandboxTest("leaves no volume of the engine behind", async ({ open }) => {
    const before = new Set((await engine.listVolumes([])).map(({ name }) => name));
    const sandbox = await open({ image: await imageWith("VOLUME /data") });
    await sandbox.close();
    const anonymous = async () =>
      (await engine.listVolumes([])).filter(({ name }) => /^[0-9a-f]{64}$/.test(name) && !before.has(name));
    await expect.poll(anonymous).toEqual([]);
  });

  sandboxTest("keeps the sandbox from starting where the place is another's", async ({ open, directory }) => {
    const image = await imageWith("VOLUME /usr/local");
    await expect(open({ image, workspace: directory })).rejects.toMatchObject({
      code: "policy.not-enforced",
      message: expect.stringContaining(image),
      hint: expect.stringContaining("VOLUME"),
    });
    expect(await readdir(directory)).toEqual([]);
  });

  sandboxTest("at a link of the image that leads elsewhere starts nothing", async ({ open, directory }) => {
    const image = await imageWith(`RUN ln -s ${directory} /data`, "VOLUME /data");
    await expect(open({ image, workspace: directory })).rejects.toMatchObject({
      code: "policy.not-enforced",
    });
  });

  sandboxTest("where the policy has a directory of its own does no harm", async ({ open }) => {
    const sandbox = await open({ image: await imageWith("VOLUME /tmp") });
    expect((await sandbox.exec(["stat", "-f", "-c", "%T", "/tmp"])).stdout).toBe("tmpfs\n");
  });

  sandboxTest(
    "is nothing more than the rest of the image where all of it can be written",
    async ({ open }) => {
      const sandbox = await open({ image: await imageWith("VOLUME /data"), mode: "danger-full-access" });
      expect((await sandbox.exec(["touch", "/data/x"])).exitCode).toBe(0);
    },
  );
});

sandboxTest("labels of the image are blank, and brig's own hold", async ({ open }) => {
  const image = await imageWith(
    'LABEL brig.session=forged brig.placeholders=["/etc"] brig.lease=0 traefik.enable=true',
  );
  const sandbox = await open({ image });
  const found = (await engine.listContainers(["brig.session"])).find(({ id }) => id === sandbox.containerId);
  expect(found?.labels).toMatchObject({
    "brig.session": sandbox.id,
    "brig.lease": "60",
    "traefik.enable": "",
  });
  expect(found?.labels["brig.placeholders"]).not.toContain("/etc");
});

sandboxTest("user, directory, command and stop signal of the image are not brig's", async ({ open }) => {
  const image = await imageWith(
    "RUN mkdir -p /odd",
    "USER 4711:4711",
    "WORKDIR /odd",
    'ENTRYPOINT ["/bin/false"]',
    'CMD ["/bin/false"]',
    "STOPSIGNAL SIGUSR1",
    "EXPOSE 80",
    'SHELL ["/bin/false"]',
  );
  const sandbox = await open({ image });
  expect((await sandbox.exec(["id", "-u"])).stdout).toBe(`${process.getuid?.()}\n`);
  expect(sandbox.proof.differences).toEqual([]);
});
