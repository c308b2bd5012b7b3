import { describe, expect, it } from "vitest";
import { describePrograms, runningPrograms } from "../../../../../src/batch/runs/place/running-programs.js";
import { BrigError } from "../../../../../src/errors.js";

type Files = Parameters<typeof runningPrograms>[0]["files"];

const gone = () => Promise.reject(new BrigError("no such file", { code: "file.not-found" }));

/** What the kernel would say. A text that is missing belongs to a process that has ended. */
function procOf(
  texts: Readonly<Record<string, string>>,
  sockets: Readonly<Record<string, string[]>> = {},
): Files {
  const pids = [
    ...new Set(Object.keys(texts).flatMap((path) => /^\/proc\/([0-9]+)\//.exec(path)?.[1] ?? [])),
  ];
  return {
    list: async (path: string) => {
      const names =
        path === "/proc" ? ["self", "net", ...pids] : (sockets[path] ?? []).map((_, at) => String(at));
      return names.map((name) => ({ name, nameBytes: Buffer.from(name), type: "file" }));
    },
    read: async (path: string) => (path in texts ? Buffer.from(texts[path] ?? "") : await gone()),
    stat: async (path: string) => {
      const [, directory = "", at = ""] = /^(.*)\/([0-9]+)$/.exec(path) ?? [];
      return { linkTarget: sockets[directory]?.[Number(at)] ?? null };
    },
  } as unknown as Files;
}

const process = (pid: number, line: string, state = "S") => ({
  [`/proc/${pid}/cmdline`]: line.replaceAll(" ", "\0"),
  [`/proc/${pid}/stat`]: `${pid} (a) b) ${state} 1 1`,
});
const row = (port: number, state: string, inode: number) =>
  `   0: 0100007F:${port.toString(16).toUpperCase().padStart(4, "0")} 00000000:0000 ${state} 00000000:00000000 00:00000000 00000000     0        0 ${inode} 1 0000000000000000\n`;

describe("what still runs in a container", () => {
  it("is named with the ports on which it listens, and those that listen come first", async () => {
    const files = procOf(
      {
        ...process(1, "/.brig/runner serve"),
        ...process(7, "/.brig/runner serve"),
        ...process(20, "sleep 60"),
        ...process(21, "/usr/sbin/nginx -g x"),
        ...process(22, "/usr/sbin/nginx -g x"),
        ...process(23, "gone", "Z"),
        ...process(24, ""),
        "/proc/net/tcp": `  sl  local_address\n${row(80, "0A", 501)}${row(40000, "01", 502)}`,
        "/proc/net/tcp6": row(443, "0A", 503),
      },
      {
        "/proc/20/fd": ["/dev/null", "socket:[502]"],
        "/proc/21/fd": ["socket:[501]", "socket:[503]"],
        "/proc/22/fd": ["socket:[501]"],
      },
    );
    const programs = await runningPrograms({ files }, undefined);
    expect(programs).toEqual([
      { name: "nginx -g x", ports: [80, 443] },
      { name: "sleep 60", ports: [] },
      { name: "a) b", ports: [] },
    ]);
    expect(describePrograms(programs)).toBe('"nginx -g x" (ports 80, 443), "sleep 60", "a) b"');
  });

  it("is nothing where nothing can be read", async () => {
    const files = { list: gone, read: gone, stat: gone } as unknown as Files;
    expect(await runningPrograms({ files }, undefined)).toEqual([]);
  });

  it("has no control sequences and no endless names in its description", () => {
    const many = Array.from({ length: 25 }, (_, at) => ({ name: `p${at}`, ports: [] }));
    expect(describePrograms(many)).toMatch(/"p19", 5 more$/);
    expect(describePrograms([{ name: "\u001b[2J", ports: [1] }])).toBe('"\\u001b[2J" (port 1)');
  });
});
