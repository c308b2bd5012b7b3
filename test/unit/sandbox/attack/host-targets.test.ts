import { readdir, readFile } from "node:fs/promises";
import { expect, it } from "vitest";
import { openHostTargets } from "../../../../src/sandbox/attack/weak-twin.js";

/** The processes of this machine that have the secret in their environment. */
async function processesWith(secret: string): Promise<string[]> {
  const ids = (await readdir("/proc")).filter((name) => /^[0-9]+$/.test(name));
  const found = await Promise.all(
    ids.map(async (id) => {
      const environment = await readFile(`/proc/${id}/environ`, "utf8").catch(() => "");
      return environment.includes(secret) ? [id] : [];
    }),
  );
  return found.flat();
}

function secretOf(argv: readonly string[]): string {
  const argument = (name: string) => argv.find((one) => one.startsWith(`${name}=`))?.slice(name.length + 1);
  return `${argument("secretBegin")}${argument("secretEnd")}`;
}

it.runIf(process.platform === "linux")(
  "leaves no process behind that has the secret [needs Linux]",
  async () => {
    const targets = await openHostTargets("unix:///proc/nonexistent/docker.sock");
    const place = {
      workspace: "/w",
      writable: [],
      protectedNames: [],
      setuidProgram: undefined,
      mayLeave: false,
    };
    const secret = secretOf(targets.attempts({ ...place, memoryBytes: 1, pids: null }));
    await expect.poll(() => processesWith(secret)).not.toEqual([]);
    const [holder] = await processesWith(secret);
    expect(await readFile(`/proc/${holder}/cmdline`, "utf8")).toContain(secret);
    await targets[Symbol.asyncDispose]();
    await expect.poll(() => processesWith(secret)).toEqual([]);
  },
);

it("the attempts are told where they are, and nothing of what there is not", async () => {
  await using targets = await openHostTargets("unix:///run/own.sock");
  const given = {
    workspace: "/w",
    writable: ["/w", "/tmp"],
    protectedNames: [".git", ".brig"],
    memoryBytes: 5,
  };
  const argv = targets.attempts({
    ...given,
    setuidProgram: "/w/s",
    firstProcess: 7,
    mayLeave: true,
    pids: 6,
  });
  expect(argv.slice(argv.indexOf("workspace=/w"))).toEqual([
    ...[
      "workspace=/w",
      "writable=/w",
      "writable=/tmp",
      "writable=",
      "protected=/w/.git",
      "protected=/w/.brig",
    ],
    ...["setuidProgram=/w/s", "firstProcess=7", "mayLeave=1", "memoryBytes=5", "manyProcesses=7"],
  ]);
  expect(argv.filter((one) => one.startsWith("engineSocket="))).toEqual([
    ...["engineSocket=/run/own.sock", "engineSocket=/var/run/docker.sock", "engineSocket=/run/docker.sock"],
  ]);
  const less = { ...given, writable: null, protectedNames: [], setuidProgram: undefined, mayLeave: false };
  const short = targets.attempts({ ...less, pids: null });
  expect(short.slice(short.indexOf("workspace=/w"))).toEqual([
    "workspace=/w",
    "firstProcess=1",
    "memoryBytes=5",
  ]);
});
