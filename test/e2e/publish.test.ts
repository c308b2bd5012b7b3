import { once } from "node:events";
import { createServer } from "node:net";
import { expect, it } from "vitest";
import { brig } from "../support/cli.js";
import { brigHere } from "../support/cli-here.js";
import { temporaryDirectory } from "../support/sandbox.js";

const page =
  "import http.server\nhttp.server.test(http.server.SimpleHTTPRequestHandler, port=3000, bind='127.0.0.1')";

it("brig exec --publish makes a server of the sandbox reachable, says where, and ends it with the command", async () => {
  await using directory = await temporaryDirectory();
  const home = directory.path;
  const running = brig(["exec", "--workspace", "none", "--publish", "0:3000", "--", "python3", "-c", page], {
    env: { BRIG_HOME: home },
  });
  const [line] = await once(running.stderr, "data");
  const [, url = ""] = /^brig: port 3000 of the sandbox is at (http:\S+)\n$/.exec(String(line)) ?? [];
  const response = await fetch(`${url}/etc/`);
  expect(response.status).toBe(200);
  expect(await response.text()).toContain("passwd");
  const listed = JSON.parse((await brig(["port", "--json"], { env: { BRIG_HOME: home } })).stdout);
  expect(listed).toEqual([
    expect.objectContaining({
      url,
      sandboxPort: 3000,
      command: expect.stringMatching(/^python3 -c /),
      pid: running.pid,
    }),
  ]);
  running.kill("SIGTERM");
  expect((await running).exitCode).toBe(143);
  await expect(fetch(url)).rejects.toThrow();
  expect((await brig(["port", "--json"], { env: { BRIG_HOME: home } })).stdout).toBe("[]\n");
});

it("brig exec --publish of a port that is taken runs nothing, and says which it is", async () => {
  const taken = createServer().listen(0, "127.0.0.1");
  await once(taken, "listening");
  const { port } = taken.address() as { port: number };
  const call = await brigHere([
    "exec",
    "--workspace",
    "none",
    "--publish",
    `${port}:3000`,
    "--",
    "echo",
    "ran",
  ]);
  taken.close();
  expect(call.exitCode).toBe(125);
  expect(call.stdout).toBe("");
  expect(call.stderr).toContain(`another program on this machine listens on port ${port} of 127.0.0.1`);
});
