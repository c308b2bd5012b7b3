import { setTimeout as sleep } from "node:timers/promises";
import { describe, expect } from "vitest";
import { heldDuring } from "../../support/garbage.js";
import { differs, titled } from "../../support/runtime-differences.js";
import { execUntilReady, program, sandboxTest } from "../../support/sandbox.js";

describe("how a command ended", () => {
  sandboxTest("every exit code from 0 to 255 arrives as it is", async ({ sandbox }) => {
    const codes = Array.from({ length: 256 }, (_, code) => code);
    const results = await Promise.all(codes.map((code) => sandbox.exec(["sh", "-c", `exit ${code}`])));
    expect(results.map(({ exitCode }) => exitCode)).toEqual(codes);
    expect(results.filter(({ signal }) => signal !== null)).toEqual([]);
  });

  sandboxTest.for([
    ["KILL", 137, "SIGKILL"],
    ["TERM", 143, "SIGTERM"],
    ["SEGV", 139, "SIGSEGV"],
    ["ABRT", 134, "SIGABRT"],
    ["PIPE", 141, "SIGPIPE"],
    ["HUP", 129, "SIGHUP"],
  ] as const)("SIG%s ends it with %i", async ([name, exitCode, signal], { sandbox }) => {
    const result = await sandbox.exec(["sh", "-c", `kill -${name} $$`]);
    expect(result).toMatchObject({ exitCode, signal, timedOut: false, outOfMemory: false });
  });

  sandboxTest("a signal that ended a grandchild is the shell's to report", async ({ sandbox }) => {
    const result = await sandbox.exec(["sh", "-c", "sh -c 'kill -9 $$'; exit $?"]);
    expect(result).toMatchObject({ exitCode: 137, signal: null });
  });

  sandboxTest("its CPU time and memory are told", async ({ sandbox }) => {
    const script = "x = bytearray(50_000_000)\nfor i in range(2_000_000): pass";
    const { usage, durationMs } = await sandbox.exec(["python3", "-c", script]);
    expect(usage.userMs).toBeGreaterThan(10);
    expect(usage.maxRssBytes).toBeGreaterThan(50_000_000);
    expect(durationMs).toBeGreaterThan(usage.userMs / 4);
  });

  sandboxTest.skipIf(differs("proc.signal-masks"))(
    titled("proc.signal-masks", "a new command blocks and ignores no signal"),
    async ({ sandbox }) => {
      const { stdout } = await sandbox.exec(["grep", "-E", "Sig(Blk|Ign)", "/proc/self/status"]);
      expect(stdout).toBe("SigBlk:\t0000000000000000\nSigIgn:\t0000000000000000\n");
    },
  );

  sandboxTest("a new command has a session of its own and no stray descriptors", async ({ sandbox }) => {
    const script = `
import fcntl, os
def is_open(fd):
    try: return fcntl.fcntl(fd, fcntl.F_GETFD) >= 0
    except OSError: return False
print(os.getsid(0) == os.getpid(), [fd for fd in range(4096) if is_open(fd)])`;
    expect((await sandbox.exec(["python3", "-c", script])).stdout).toBe("True [0, 1, 2]\n");
  });
});

describe("what a command printed", () => {
  sandboxTest("bytes that are not UTF-8 are replaced in text and kept in buffers", async ({ sandbox }) => {
    const argv = ["printf", "a\\377\\376b"];
    expect((await sandbox.exec(argv)).stdout).toBe("a\ufffd\ufffdb");
    expect((await sandbox.exec(argv, { encoding: "buffer" })).stdout).toEqual(
      Buffer.from([97, 255, 254, 98]),
    );
  });

  sandboxTest("NUL bytes and a missing final newline stay as they are", async ({ sandbox }) => {
    expect((await sandbox.exec(["printf", "a\\000b"])).stdout).toBe("a\0b");
    expect((await sandbox.exec(["true"])).output).toBe("");
  });

  sandboxTest("a character that arrives in pieces is whole", async ({ sandbox }) => {
    const text = "añ漢🙂é";
    expect((await sandbox.exec(program("splits-utf8.py", text))).stdout).toBe(text);
  });

  sandboxTest("output holds both streams in the order of their arrival", async ({ sandbox }) => {
    // Each piece waits until the one before it has arrived: what lies in two pipes at once has no order.
    const script =
      "echo 1; until test -e /tmp/1; do sleep 0.01; done; echo 2 >&2; until test -e /tmp/2; do sleep 0.01; done; echo 3";
    const arrived = (data: Uint8Array) => sandbox.files.write(`/tmp/${String(data).trim()}`, "");
    const options = { onStdout: arrived, onStderr: arrived };
    expect(await sandbox.exec(["sh", "-c", script], options)).toMatchObject({
      stdout: "1\n3\n",
      stderr: "2\n",
      output: "1\n2\n3\n",
    });
  });

  sandboxTest("what was printed before a timeout is kept", async ({ sandbox }) => {
    const result = await execUntilReady(sandbox, ["sh", "-c", "echo ready; sleep 300"], 1000);
    expect(result).toMatchObject({ exitCode: 124, timedOut: true, stdout: "ready\n" });
  });

  sandboxTest("head and tail are kept, and the text says exactly what is missing", async ({ sandbox }) => {
    const result = await sandbox.exec(["seq", "-w", "0", "99999"], { maxOutputBytes: 1200 });
    expect(result.truncated).toBe(true);
    expect(result.omittedBytes).toEqual({ stdout: 600_000 - 1200, stderr: 0 });
    expect(result.stdout).toBe(
      `${lines(0, 100)}\n[… ${600_000 - 1200} bytes left out …]\n${lines(99_900, 100_000)}`,
    );
  });

  sandboxTest("a cut never breaks a character", async ({ sandbox }) => {
    for (const maxOutputBytes of [100, 101, 102, 103]) {
      const script = "import sys; sys.stdout.write('漢字' * 1000)";
      const { stdout } = await sandbox.exec(["python3", "-c", script], { maxOutputBytes });
      expect(stdout).not.toContain("\ufffd");
      const omitted = Number(/\[… (\d+) bytes left out …\]/.exec(stdout)?.[1]);
      const kept = stdout.replace(/\n\[… \d+ bytes left out …\]\n/, "");
      expect(Buffer.byteLength(kept) + omitted).toBe(6000);
    }
  });

  sandboxTest(
    "200 MB without a newline pass in bounded memory, and no byte goes uncounted",
    async ({ sandbox }) => {
      const script = "head -c 200000000 /dev/zero | tr '\\0' A";
      const held = await heldDuring(async () => {
        const result = await sandbox.exec(["sh", "-c", script], { maxOutputBytes: 1_000_000 });
        expect(result.omittedBytes.stdout).toBe(199_000_000);
        expect(Buffer.byteLength(result.stdout)).toBeLessThan(1_000_100);
      });
      expect(held).toBeLessThan(16_000_000);
    },
  );
});

describe("callbacks for output", () => {
  sandboxTest("they get every byte, also what the result leaves out", async ({ sandbox }) => {
    let stdout = 0;
    let stderr = "";
    const result = await sandbox.exec(["sh", "-c", "head -c 3000000 /dev/zero; echo done >&2"], {
      maxOutputBytes: 10,
      onStdout: (chunk) => {
        stdout += chunk.length;
      },
      onStderr: (chunk) => {
        stderr += Buffer.from(chunk).toString();
      },
    });
    expect([stdout, stderr]).toEqual([3_000_000, "done\n"]);
    expect(result.omittedBytes.stdout).toBe(2_999_990);
  });

  sandboxTest("a slow one holds the command back, and nobody else", async ({ sandbox }) => {
    const pause = gate();
    let received = 0;
    let produced = 0;
    const flood = sandbox.exec(
      [
        "python3",
        "-c",
        "import sys\nfor i in range(100):\n  sys.stdout.write('x' * 100_000); print(i, file=sys.stderr, flush=True)",
      ],
      {
        onStdout: async (chunk) => {
          received += chunk.length;
          await pause.opened;
        },
        onStderr: () => void produced++,
      },
    );
    await sleep(300);
    // Granted 256 KiB, and a pipe holds another 64 KiB: the rest was not even produced.
    expect(received).toBeLessThanOrEqual(256 * 1024);
    expect(produced).toBeLessThan(8);
    for (let i = 0; i < 20; i++) expect((await sandbox.exec(["echo", "quick"])).stdout).toBe("quick\n");
    pause.open();
    await flood;
    expect(received).toBe(10_000_000);
  });

  sandboxTest("one that throws ends its own call with its own error", async ({ sandbox }) => {
    const mistake = new Error("my mistake");
    const other = sandbox.exec(["sh", "-c", "sleep 0.3; echo fine"]);
    const call = sandbox.exec(["sh", "-c", "echo x; sleep 300"], {
      onStdout: () => {
        throw mistake;
      },
    });
    await expect(call).rejects.toBe(mistake);
    expect((await other).stdout).toBe("fine\n");
  });

  sandboxTest("one that rejects ends its own call with its own error", async ({ sandbox }) => {
    const mistake = new Error("my mistake");
    const call = sandbox.exec(["sh", "-c", "yes; true"], {
      onStdout: async () => {
        await sleep(1);
        throw mistake;
      },
    });
    await expect(call).rejects.toBe(mistake);
    expect((await sandbox.exec(["echo", "fine"])).stdout).toBe("fine\n");
  });
});

describe("the environment of a command", () => {
  sandboxTest("variables are added and removed for one call only", async ({ sandbox }) => {
    const env = { ADDED: "a=b \n c", LANG: undefined, EMPTY: "" };
    const result = await sandbox.exec(["env", "-0"], { env });
    const variables = result.stdout.split("\0");
    expect(variables).toEqual(expect.arrayContaining(["ADDED=a=b \n c", "EMPTY=", "HOME=/home/brig"]));
    expect(variables.some((variable) => variable.startsWith("LANG="))).toBe(false);
    expect((await sandbox.exec(["env"])).stdout).not.toContain("ADDED");
  });

  sandboxTest("a program is looked up in the PATH it is given", async ({ sandbox, workspace }) => {
    await sandbox.files.write(`${workspace}/bin-tool`, "#!/bin/sh\necho own tool\n", { mode: 0o755 });
    const env = { PATH: `/proc/nonexistent:${workspace}:/usr/bin:/bin` };
    expect((await sandbox.exec(["bin-tool"], { env })).stdout).toBe("own tool\n");
  });

  sandboxTest("a text file without an interpreter line is a shell script", async ({ sandbox, workspace }) => {
    await sandbox.files.write(`${workspace}/script`, 'echo "$0 $1 $#"\n', { mode: 0o755 });
    const result = await sandbox.exec([`${workspace}/script`, "one", "two"]);
    expect(result.stdout).toBe(`${workspace}/script one 2\n`);
  });

  sandboxTest("arguments arrive byte by byte as they were given", async ({ sandbox }) => {
    const odd = ["", " ", "a\nb", "-n", "$HOME", "'\"\\", "漢🙂", "*", "x".repeat(131_071)];
    const script = "import sys; sys.stdout.write('\\0'.join(sys.argv[1:]))";
    expect((await sandbox.exec(["python3", "-c", script, ...odd])).stdout).toBe(odd.join("\0"));
  });
});

function gate(): { opened: Promise<void>; open: () => void } {
  let open: () => void = () => undefined;
  const opened = new Promise<void>((resolve) => {
    open = resolve;
  });
  return { opened, open: () => open() };
}

function lines(from: number, to: number): string {
  let text = "";
  for (let i = from; i < to; i++) text += `${String(i).padStart(5, "0")}\n`;
  return text;
}
