import { describe, expect } from "vitest";
import { changedPolicy } from "../../support/policies.js";
import { differs, titled } from "../../support/runtime-differences.js";
import { sandboxTest } from "../../support/sandbox.js";

const python = (script: string) => ["python3", "-c", script];

/** Takes without end of what no control group counts. */
const takers = {
  locks: `
import fcntl, os
for f in range(10000):
    fd = os.open("/tmp/l%d" % f, os.O_RDWR | os.O_CREAT)
    for at in range(500): fcntl.lockf(fd, fcntl.LOCK_EX, 1, 1000 - 2 * at)`,
  unread: `
import socket, struct
keep = []
while True:
    s = socket.socket(16, 3, 0); s.bind((0, 0)); s.setblocking(False); keep.append(s)
    try:
        for i in range(60): s.send(struct.pack("IHHIIBBHiII", 32, 18, 0x301, i, 0, 0, 0, 0, 0, 0, 0))
    except OSError: pass`,
  orphans: `
import socket
s = socket.socket(); s.setsockopt(1, 8, 2048); s.bind(("127.0.0.1", 0)); s.listen(4096); keep = []
while True:
    c = socket.socket(); c.setsockopt(1, 7, 4096); c.connect(s.getsockname()); c.setblocking(False); keep.append(s.accept()[0])
    try:
        while True: c.send(b"x" * 4096)
    except BlockingIOError: pass
    c.close()`,
};

describe.skipIf(differs("limits.memory"))(titled("limits.memory", "a sandbox"), () => {
  sandboxTest.for([
    ["locks", /40000 locks of files/],
    ["unread", /32 MiB unread in sockets/],
    ["orphans", /2048 TCP connections/],
  ] as const)("is ended when it takes too much of %s, and says so", async ([kind, message], { open }) => {
    const sandbox = await open({ workspaceKind: "none" });
    const taking = sandbox.exec(python(takers[kind]), { timeoutMs: 60_000 });
    const error: unknown = await taking.then(
      () => null,
      (reason: unknown) => reason,
    );
    expect(error).toMatchObject({ code: "sandbox.gone", reason: "machine-share" });
    expect(String(error)).toMatch(message);
  });

  sandboxTest(
    "takes no more terminals than its own, and a leftover that has them all goes",
    async ({ open }) => {
      const sandbox = await open({ workspaceKind: "none" });
      const terminals = `
import os, time
if os.fork(): time.sleep(1); os._exit(0)
os.setsid(); kept = []
try:
    while True: kept.append(os.open("/dev/ptmx", os.O_RDWR | os.O_NOCTTY))
except OSError as e: print(len(kept), e.errno, flush=True)
time.sleep(300)`;
      expect((await sandbox.exec(python(terminals))).stdout).toBe("64 28\n");
      const next = await sandbox.spawn(["true"], { pty: { rows: 2, cols: 2 } });
      next.stdout.resume();
      expect(await next.exit).toMatchObject({ exitCode: 0, startFailure: null });
    },
  );
});

describe.skipIf(differs("limits.memory"))(titled("limits.memory", "a process that was left"), () => {
  sandboxTest(
    "that holds the memory goes once it has cost a command its life",
    async ({ open, directory }) => {
      const limits = { memoryMb: 256, sizeMb: 32, shmMb: 32 };
      const sandbox = await open({
        workspaceKind: "none",
        policyFile: await changedPolicy(directory, limits),
      });
      const holder = `
import os, time
end, full = os.pipe()
if os.fork(): os.read(end, 1); os._exit(0)
os.setsid(); f = os.memfd_create("held")
for i in range(232): os.write(f, b"x" * (1 << 20))
os.write(full, b"x"); time.sleep(300)`;
      await sandbox.exec(python(holder));
      const taker = python("print(len(b'x' * (60 << 20)))");
      const killed = await sandbox.exec(taker);
      expect(killed).toMatchObject({
        ...{ exitCode: 137, outOfMemory: true },
        stderr: expect.stringContaining(
          "earlier commands were ended, because they held most of the sandbox's memory",
        ),
      });
      expect(await sandbox.exec(taker)).toMatchObject({ exitCode: 0, stderr: "" });
    },
  );
});
