import { expect, it, vi } from "vitest";
import { Sandbox } from "../../../src/index.js";
import { endProcess, lastingPlace, upIn } from "../../support/lasting.js";

it("Sandbox.connect reaches a sandbox of brig up, and letting go of it ends nothing", async () => {
  const place = await lastingPlace();
  vi.stubEnv("BRIG_HOME", place.home);
  await expect(Sandbox.connect("one")).rejects.toMatchObject({ code: "sandbox.unknown" });
  await upIn(place, "--name", "one");
  const sandbox = await Sandbox.connect("one");
  expect(sandbox).toMatchObject({ image: "brig/base", workingDirectory: place.workspace });
  expect(await sandbox.exec(["sh", "-c", "echo out; exit 3"])).toMatchObject({
    exitCode: 3,
    stdout: "out\n",
  });
  await sandbox.files.write("/tmp/file", "written");
  expect((await sandbox.files.read("/tmp/file")).toString()).toBe("written");
  const started = await sandbox.spawn(["cat"]);
  started.stdin?.end("through cat");
  let printed = "";
  for await (const chunk of started.stdout) printed += chunk;
  expect([printed, (await started.exit).exitCode]).toEqual(["through cat", 0]);
  await sandbox.close();
  await sandbox.close();
  expect((await place.run("exec", "--in", "one", "--", "cat", "/tmp/file")).stdout).toBe("written");
  // What programs run is in the log, too.
  expect((await place.run("logs", "one")).stdout).toBe("out\nthrough catwritten");
  await using byId = await Sandbox.connect(sandbox.id.slice(0, 8));
  expect(byId.id).toBe(sandbox.id);
  await place.run("stop", "one");
  await expect(byId.exec(["true"])).rejects.toMatchObject({ code: "serve.unknown" });
  await expect(Sandbox.connect("one")).rejects.toMatchObject({ code: "sandbox.gone" });
  await upIn(place, "--name", "two");
  await endProcess((await place.ownerPid()) ?? 0, "SIGTERM");
  await expect(Sandbox.connect("two")).rejects.toMatchObject({ code: "sandbox.gone" });
  const option = { signals: null } as object;
  await expect(Sandbox.connect("two", option)).rejects.toMatchObject({ code: "usage.invalid" });
});
