import { createHash, randomBytes } from "node:crypto";
import { once } from "node:events";
import { buffer } from "node:stream/consumers";
import { finished } from "node:stream/promises";
import { describe, expect } from "vitest";
import { SandboxNetwork } from "../../../../src/sandbox/network/sandbox-network.js";
import { address, connected, listenInside, readText } from "../../../support/inside-listener.js";
import { sandboxTest } from "../../../support/sandbox.js";

describe("a listener inside the sandbox", () => {
  sandboxTest(
    "gets each connection with its addresses, and each direction ends by itself",
    async ({ sandbox }) => {
      const network = new SandboxNetwork(sandbox.link);
      const { listener, next } = await listenInside(network, 4001);
      const script =
        "s.sendall(b'question'); s.shutdown(1); print(s.makefile().read()); print(s.getsockname()[1])";
      const running = sandbox.exec(connected(4001, script));
      const { stream, to, from } = await next();
      expect(await readText(stream)).toBe("question");
      stream.end("answer");
      const { stdout } = await running;
      expect(to).toEqual({ address, port: 4001 });
      expect(stdout).toBe(`answer\n${from.port}\n`);
      expect(from.address).toBe(address);
      await listener.close();
      const refused = await sandbox.exec(connected(4001, ""));
      expect(refused.stderr).toContain("ConnectionRefusedError");
    },
  );

  sandboxTest("goes on after a write without bytes", async ({ sandbox }) => {
    const { listener, next } = await listenInside(new SandboxNetwork(sandbox.link), 4009);
    const running = sandbox.exec(connected(4009, "print(s.makefile().read())"));
    const { stream } = await next();
    stream.write("");
    stream.write("one ");
    stream.write(Buffer.alloc(0));
    stream.end("two");
    expect((await running).stdout).toBe("one two\n");
    await listener.close();
  });

  sandboxTest("tells a reset from an end of file, in both directions", async ({ sandbox }) => {
    const network = new SandboxNetwork(sandbox.link);
    const { listener, next } = await listenInside(network, 4002);
    const reset = "import struct; s.setsockopt(1, socket.SO_LINGER, struct.pack('ii', 1, 0)); s.close()";
    const byProgram = sandbox.exec(connected(4002, reset));
    await expect(finished((await next()).stream)).rejects.toMatchObject({
      code: "sandbox.port-failed",
      errno: "ECONNRESET",
    });
    await byProgram;
    const byHost = sandbox.exec(connected(4002, "s.recv(1)"));
    (await next()).stream.destroy();
    expect((await byHost).stderr).toContain("ConnectionResetError");
    await listener.close();
  });

  sandboxTest("refuses a port that is taken, and any address but loopback", async ({ sandbox }) => {
    const network = new SandboxNetwork(sandbox.link);
    const { listener } = await listenInside(network, 4003);
    await expect(network.listen({ address, port: 4003 }, () => undefined)).rejects.toMatchObject({
      code: "sandbox.port-in-use",
    });
    for (const other of ["0.0.0.0", "10.0.0.1", "::", "localhost"])
      await expect(network.listen({ address: other, port: 4004 }, () => undefined)).rejects.toMatchObject({
        code: "usage.invalid",
      });
    await listener.close();
    await network.listen({ address, port: 4003 }, () => undefined).then((again) => again.close());
  });

  sandboxTest(
    "carries megabytes both ways at once, while the stream breaks again and again",
    async ({ sandbox }) => {
      const network = new SandboxNetwork(sandbox.link);
      const { listener, next } = await listenInside(network, 4005);
      const echo =
        "import shutil\nf = s.makefile('rwb')\nwhile d := s.recv(65536): s.sendall(d)\ns.shutdown(1)";
      const running = sandbox.exec(connected(4005, echo));
      const { stream } = await next();
      const sent = randomBytes(24 << 20);
      const breaking = setInterval(() => sandbox.link.breakStream(), 60);
      stream.end(sent);
      const received = await buffer(stream).finally(() => clearInterval(breaking));
      expect(received.length).toBe(sent.length);
      expect(createHash("sha256").update(received).digest("hex")).toBe(
        createHash("sha256").update(sent).digest("hex"),
      );
      expect((await running).exitCode).toBe(0);
      await listener.close();
    },
  );

  sandboxTest("takes a thousand connections at once, none of which delays a command", async ({ sandbox }) => {
    const network = new SandboxNetwork(sandbox.link);
    const { listener, next } = await listenInside(network, 4006);
    const script = [
      `all = [socket.create_connection(("${address}", 4006)) for _ in range(999)] + [s]`,
      "for i, c in enumerate(all): c.sendall(b'%d\\n' % i)",
      "print(sum(int(c.makefile().readline()) for c in all))",
    ].join("\n");
    const running = sandbox.exec(connected(4006, script));
    const streams = [];
    for (let i = 0; i < 1000; i++) streams.push((await next()).stream);
    expect((await sandbox.exec(["echo", "still here"])).stdout).toBe("still here\n");
    for (const stream of streams) stream.once("data", (line: Buffer) => stream.end(line));
    expect((await running).stdout).toBe(`${(999 * 1000) / 2}\n`);
    await listener.close();
  });

  sandboxTest("a program that never reads, and one that floods, hold up nobody else", async ({ sandbox }) => {
    const network = new SandboxNetwork(sandbox.link);
    const { listener, next } = await listenInside(network, 4007);
    const sits = await sandbox.spawn(connected(4007, "time.sleep(1000)"), { stdin: "closed" });
    const deaf = await next();
    let taken = 0;
    const piece = Buffer.alloc(64 << 10);
    const fill = () => {
      while (taken < 64 << 20 && deaf.stream.write(piece)) taken += piece.length;
    };
    deaf.stream.on("drain", fill);
    fill();
    const floods = await sandbox.spawn(connected(4007, "while True: s.sendall(bytes(65536))"), {
      stdin: "closed",
    });
    const unread = await next();
    for (let i = 0; i < 5; i++) expect((await sandbox.exec(["echo", String(i)])).stdout).toBe(`${i}\n`);
    expect(taken).toBeLessThan(8 << 20);
    expect(unread.stream.readableLength).toBeLessThan(1 << 20);
    await Promise.all([sits.kill(), floods.kill()]);
    deaf.stream.destroy();
    unread.stream.destroy();
    await listener.close();
  });

  sandboxTest("says which call a connection belongs to", async ({ sandbox }) => {
    const network = new SandboxNetwork(sandbox.link);
    const { listener, next } = await listenInside(network, 4008);
    const before = sandbox.link.channelCount;
    // The connection's process has left the shell that started it, as daemons do.
    const running = sandbox.exec(
      ["sh", "-c", '(setsid "$@" &) ; sleep 1000', "sh", ...connected(4008, "s.recv(1)")],
      {
        timeoutMs: 200_000,
        signal: AbortSignal.timeout(200_000),
      },
    );
    const connection = await next();
    const other = await sandbox.spawn(connected(4008, "s.recv(1)"), { stdin: "closed" });
    const second = await next();
    const [owner, ofSecond] = await Promise.all([network.ownerOf(connection), network.ownerOf(second)]);
    expect(owner).toMatchObject({ program: "python3" });
    expect(owner?.channel).toBeGreaterThan(before);
    expect(ofSecond?.channel).toBeGreaterThan(owner?.channel ?? Number.POSITIVE_INFINITY);
    expect(ofSecond?.pid).not.toBe(owner?.pid);
    const nobody = { ...connection, from: { address, port: 1 } };
    expect(await network.ownerOf(nobody)).toBeNull();
    connection.stream.end();
    second.stream.end();
    await other.exit;
    await sandbox.exec(["pkill", "sleep"]);
    await running;
    await listener.close();
  });
});

describe("datagrams", () => {
  sandboxTest("arrive, and are answered to where they came from", async ({ sandbox }) => {
    const network = new SandboxNetwork(sandbox.link);
    const socket = await network.receiveDatagrams({ address: "127.0.0.53", port: 5300 }, (data, reply) =>
      reply(Buffer.from(`${data.toString()}!`)),
    );
    const script = [
      "import socket",
      "s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); s.settimeout(100)",
      "s.sendto(b'x' * 60000, ('127.0.0.53', 5300)); print(len(s.recv(65536)))",
      "s.sendto(b'', ('127.0.0.53', 5300)); print(s.recv(10))",
    ].join("\n");
    const { stdout, stderr } = await sandbox.exec(["python3", "-c", script]);
    expect(stderr).toBe("");
    expect(stdout).toBe("60001\nb'!'\n");
    await socket.close();
  });

  sandboxTest("in a flood are dropped, while commands go on and later ones arrive", async ({ sandbox }) => {
    const network = new SandboxNetwork(sandbox.link);
    let count = 0;
    const socket = await network.receiveDatagrams({ address, port: 5301 }, (_data, reply) => {
      count++;
      reply(Buffer.from("seen"));
    });
    const flood = `import socket\ns = socket.socket(2, 2)\nwhile True: s.sendto(bytes(1000), ("${address}", 5301))`;
    const flooding = await sandbox.spawn(["python3", "-c", flood], { stdin: "closed" });
    await expect.poll(() => count).toBeGreaterThan(1000);
    expect((await sandbox.exec(["echo", "on"])).stdout).toBe("on\n");
    await flooding.kill();
    const ask = `import socket\ns = socket.socket(2, 2); s.settimeout(1)\nfor i in range(100):\n  s.sendto(b'q', ("${address}", 5301))\n  try: print(s.recv(9)); break\n  except OSError: pass`;
    expect((await sandbox.exec(["python3", "-c", ask])).stdout).toBe("b'seen'\n");
    await socket.close();
  });
});

describe("a connection from the host", () => {
  sandboxTest("reaches a server inside, and says when there is none", async ({ sandbox }) => {
    const network = new SandboxNetwork(sandbox.link);
    await expect(network.connect({ address, port: 4010 })).rejects.toMatchObject({
      code: "sandbox.port-failed",
      errno: "ECONNREFUSED",
    });
    const serve = `import socket\nl = socket.create_server(("${address}", 4010)); print("ready", flush=True)\nc, _ = l.accept(); d = c.makefile().read(); c.sendall(d.upper().encode())`;
    const server = await sandbox.spawn(["python3", "-c", serve], { stdin: "closed" });
    await once(server.stdout, "data");
    const stream = await network.connect({ address, port: 4010 });
    stream.end("question");
    expect(await readText(stream)).toBe("QUESTION");
    await server.exit;
  });
});
