import { text } from "node:stream/consumers";
import { describe, expect, vi } from "vitest";
import type { Engine } from "../../../src/sandbox/docker/engine-types.js";
import type { Sandbox } from "../../../src/sandbox/sandbox.js";
import { promised } from "../../guarantees.js";
import { forEachHostUser } from "../../support/each-host-user.js";
import { call, testEngine } from "../../support/engine.js";
import { differs, titled } from "../../support/runtime-differences.js";
import { program, sandboxTest } from "../../support/sandbox.js";

/** An engine that overhears the token in the first HELLO. */
async function overhearingEngine(): Promise<{ engine: Engine; token: () => Buffer }> {
  const engine = await testEngine();
  let token: Buffer | undefined;
  const attachContainer: Engine["attachContainer"] = async (id) => {
    const attached = await engine.attachContainer(id);
    const write = attached.stream.write.bind(attached.stream);
    attached.stream.write = ((frame: Buffer, ...rest: []) => {
      token ??= Buffer.from(frame.subarray(16, 48));
      return write(frame, ...rest);
    }) as typeof attached.stream.write;
    return attached;
  };
  return {
    engine: Object.assign(Object.create(engine) as Engine, { attachContainer }),
    token: () => token ?? Buffer.alloc(0),
  };
}

async function whereFound(sandbox: Sandbox, ...secrets: Buffer[]): Promise<string[]> {
  const result = await sandbox.exec(program("find-bytes.py", ...secrets.map((one) => one.toString("hex"))));
  expect(result.stderr).toBe("");
  return result.stdout.split("\n").filter((line) => line !== "");
}

describe("the session's token", () => {
  forEachHostUser((userTest, { uid }) => {
    userTest(promised("contained.secrets", "is nowhere inside"), async ({ open }) => {
      const { engine, token } = await overhearingEngine();
      const sandbox = await open({ engine });
      expect(token()).toHaveLength(32);
      const spellings = [
        token(),
        Buffer.from(token().toString("hex")),
        Buffer.from(token().toString("base64")),
      ];
      expect(await whereFound(sandbox, ...spellings)).toEqual([]);
      // The control: what does lie inside is found.
      await sandbox.files.write("/tmp/copy", token());
      expect(await whereFound(sandbox, ...spellings)).toEqual(["/tmp/copy"]);
    });

    userTest.for(["mem", "cwd/etc/passwd", "root/etc/passwd"])(
      "PID 1 keeps its %s to itself",
      async (name, { sandbox }) => await requireUnreadable(sandbox, `/proc/1/${name}`),
    );

    userTest.skipIf(differs("proc.of-pid-1"))(
      titled("proc.of-pid-1", "PID 1 keeps its environment, its maps and its stack to itself"),
      async ({ sandbox }) => {
        for (const name of ["environ", "maps", "stack", "auxv"])
          await requireUnreadable(sandbox, `/proc/1/${name}`);
      },
    );

    userTest.skipIf(differs("runner.descriptors"))(
      titled("runner.descriptors", "no descriptor of PID 1 can be opened"),
      async ({ sandbox }) => {
        const script =
          "for i in $(seq 0 60); do head -c 1 /proc/1/fd/$i; readlink /proc/1/fd/$i; done 2>/dev/null";
        expect((await sandbox.exec(["sh", "-c", script], { timeoutMs: 20_000 })).output).toBe("");
      },
    );

    // The directory belongs to root: where that is the host's user too, the mere numbers can be listed.
    const otherUserTest = uid === 0 ? null : userTest.skipIf(differs("proc.of-pid-1"));
    otherUserTest?.(
      titled("proc.of-pid-1", "the descriptors of PID 1 cannot even be listed"),
      async ({ sandbox }) => {
        for (const name of ["fd", "fdinfo", "map_files"]) {
          const path = `/proc/1/${name}`;
          await expect(sandbox.files.list(path)).rejects.toMatchObject({ code: "file.not-permitted" });
          expect(await sandbox.exec(["ls", path])).toMatchObject({ exitCode: 2, stdout: "" });
        }
      },
    );
  });
});

describe.each(["workspace-write", "danger-full-access"] as const)("in %s a worker", (mode) => {
  sandboxTest("shows nobody its memory, also while it becomes another program", async ({ open }) => {
    const sandbox = await open({ mode });
    const looking = sandbox.exec(program("open-memory.py", "3"));
    let isOver = false;
    void looking.finally(() => {
      isOver = true;
    });
    // Those that are killed meanwhile fail.
    while (!isOver) await sandbox.files.stat("/tmp").catch(() => undefined);
    const [killed, ...opened] = (await looking).stdout.trim().split("\n");
    expect(Number(killed)).toBeGreaterThan(20);
    expect(opened).toEqual([]);
  });
});

async function requireUnreadable(sandbox: Sandbox, path: string): Promise<void> {
  await expect(sandbox.files.read(path)).rejects.toMatchObject({ code: "file.not-permitted" });
  const command = await sandbox.exec(["cat", path]);
  expect(command).toMatchObject({ exitCode: 1, stdout: "" });
  expect(command.stderr).toMatch(/Permission denied|Operation not permitted/);
}

describe("the host's environment", () => {
  forEachHostUser((userTest) => {
    userTest("does not come in, and what is given to commands is in no description", async ({ open }) => {
      vi.stubEnv("OPENAI_API_KEY", "sk-host-secret");
      vi.stubEnv("AWS_SECRET_ACCESS_KEY", "aws-host-secret");
      const sandbox = await open({ env: { GIVEN: "given-value-4711" } });
      const { stdout } = await sandbox.exec(["env"]);
      expect(stdout).toContain("GIVEN=given-value-4711");
      expect(stdout).not.toContain("host-secret");
      const socket = new URL(sandbox.engine.endpoint).pathname;
      const path = `/containers/${sandbox.containerId}/json`;
      const description = await text(await call(socket, { method: "GET", path }));
      expect(description).not.toContain("given-value-4711");
      expect(description).not.toContain("host-secret");
      expect(await whereFound(sandbox, Buffer.from("host-secret"))).toEqual([]);
    });
  });
});

describe("a process inside that knocks at the runner's socket", () => {
  forEachHostUser((userTest) => {
    userTest("gets nothing and harms nothing", async ({ sandbox }) => {
      const running = sandbox.exec(["sh", "-c", "sleep 1; echo unharmed"]);
      const result = await sandbox.exec(program("knock.py", "ask"));
      expect(JSON.parse(result.stdout)).toEqual({
        question: "",
        hello: "",
        noise: "",
        streams: "",
        "many streams": "",
      });
      expect((await running).stdout).toBe("unharmed\n");
      expect((await sandbox.exec(["echo", "fine"])).stdout).toBe("fine\n");
    });

    userTest("cannot keep the host out with a hundred connections", async ({ sandbox }) => {
      const holding = await sandbox.spawn(program("knock.py", "hold", "100", "4"));
      await sandbox.exec(["sleep", "0.5"]);
      for (let i = 0; i < 10; i++) {
        sandbox.link.breakStream();
        expect((await sandbox.exec(["echo", String(i)])).stdout).toBe(`${i}\n`);
      }
      expect(await text(holding.stdout)).toBe("true\n");
    });

    userTest("cannot take the socket's name", async ({ sandbox }) => {
      const script =
        "import socket\ns = socket.socket(socket.AF_UNIX)\ntry: s.bind('\\0brig-runner')\nexcept OSError as e: print(e.errno)";
      expect((await sandbox.exec(["python3", "-c", script])).stdout).toBe("98\n");
    });

    userTest("cannot speak for the host through a runner of its own", async ({ sandbox }) => {
      const names = "/.brig/runner-files /.brig/runner-gvisor-files";
      const script = `for r in ${names}; do timeout 20 $r connect < /dev/null; echo "code $?"; done 2>&1`;
      const { stdout } = await sandbox.exec(["bash", "-c", script]);
      expect(stdout).toContain("code 1");
      expect(stdout).not.toContain("code 0");
      await sandbox.ping();
    });
  });
});
