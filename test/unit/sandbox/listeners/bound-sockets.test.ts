import { expect, it } from "vitest";
import { isNamed, parseBoundSockets } from "../../../../src/sandbox/listeners/cover-listeners.js";

const table = `Num       RefCount Protocol Flags    Type St Inode Path
00000000e2009c49: 00000002 00000000 00010000 0001 01 101 /run/listens.sock
0000000081e2a421: 00000003 00000000 00000000 0001 03 102 /run/listens.sock
0000000081e2a422: 00000002 00000000 00000000 0001 02     0 /run/listens.sock
0000000081e2a423: 00000002 00000000 00010000 0005 01 103 /run/packets.sock
0000000081e2a424: 00000002 00000000 00000000 0001 01 104 not-yet.sock
0000000081e2a425: 00000002 00000000 00000000 0002 01 105 /run/a name with spaces
0000000081e2a426: 00000002 00000000 00000000 0002 03 106 /run/datagrams-connected
0000000081e2a427: 00000002 00000000 00010000 0001 01 107 @abstract
0000000081e2a428: 00000003 00000000 00000000 0001 03 108
`;

it("sockets that take something are those with a name that are no connection", () => {
  expect(parseBoundSockets(table).map(({ id, name }) => `${id} ${name}`)).toEqual([
    "101 /run/listens.sock",
    "103 /run/packets.sock",
    "104 not-yet.sock",
    "105 /run/a name with spaces",
    "106 /run/datagrams-connected",
  ]);
});

it.each([
  ["/run/listens.sock", true],
  ["/work/not-yet.sock", true],
  ["/work/sub/not-yet.sock", true],
  ["/work/xnot-yet.sock", false],
  ["/work/run/listens.sock", false],
])("the table may name %s: %s", (path, expected) => {
  expect(isNamed(path, parseBoundSockets(table))).toBe(expected);
});
