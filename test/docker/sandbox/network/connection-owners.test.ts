import { describe, expect } from "vitest";
import type { InsideConnection } from "../../../../src/sandbox/egress/inside-network.js";
import { SandboxNetwork } from "../../../../src/sandbox/network/sandbox-network.js";
import { address, connected, listenInside, readText } from "../../../support/inside-listener.js";
import { sandboxTest } from "../../../support/sandbox.js";

describe("whose a connection is", () => {
  sandboxTest("is found for each of a program's, wherever its descriptors are", async ({ sandbox }) => {
    const network = new SandboxNetwork(sandbox.link);
    const { listener, next } = await listenInside(network, 4011);
    const script = [
      "kept = [s]",
      "for i in range(40):",
      "  kept += [os.open('/dev/null', 0) for _ in range(30 if i % 10 == 0 else 0)]",
      `  kept.append(socket.create_connection(("${address}", 4011)))`,
      "  if i == 20: [os.close(k) for k in kept if isinstance(k, int)]; kept = [k for k in kept if not isinstance(k, int)]",
      "  sys.stdin.readline()",
      "print(os.getpid())",
    ].join("\n");
    const running = await sandbox.spawn(connected(4011, script));
    const owners = [await network.ownerOf(await next())];
    for (let i = 0; i < 40; i++) {
      owners.push(await network.ownerOf(await next()));
      running.stdin?.write("\n");
    }
    const pid = Number(await readText(running.stdout));
    expect(owners.map((owner) => owner?.pid)).toEqual(new Array(41).fill(pid));
    await listener.close();
  });

  sandboxTest("is found for a socket of IPv6, with addresses of either kind", async ({ sandbox }) => {
    const network = new SandboxNetwork(sandbox.link);
    for (const { at, dialled } of [
      { at: { address: "127.0.0.1", port: 4012 }, dialled: "::ffff:127.0.0.1" },
      { at: { address: "::1", port: 4013 }, dialled: "::1" },
    ]) {
      const arrived: InsideConnection[] = [];
      const listener = await network.listen(at, (connection) => void arrived.push(connection));
      const script = `import socket, sys\ns = socket.socket(socket.AF_INET6)\ns.connect(("${dialled}", ${at.port}))\nsys.stdin.read()`;
      const running = await sandbox.spawn(["python3", "-c", script]);
      await expect.poll(() => arrived.length).toBe(1);
      const [connection] = arrived;
      if (connection === undefined) throw new Error("no connection arrived");
      expect(await network.ownerOf(connection)).toMatchObject({ program: "python3" });
      running.stdin?.end();
      await running.exit;
      await listener.close();
    }
  });
});
