import { BlockList, isIPv4, isIPv6, SocketAddress } from "node:net";
import { BrigError } from "../../errors.js";
import { namesByNumber } from "../../lib/names-by-number.js";
import { protocolError } from "../channel/frames.js";
import { ADDRESS_BYTES, AddressFamily } from "../channel/protocol.js";
import type { InsideAddress } from "../egress/inside-network.js";

const families = namesByNumber(AddressFamily);
const HOST_AT = 4;
const IPV4_BYTES = 4;

const loopback = new BlockList();
loopback.addSubnet("127.0.0.0", 8, "ipv4");
loopback.addAddress("::1", "ipv6");

/** Error: `usage.invalid` for another address than one of loopback, or for no port. */
export function encodeAddress({ address, port }: InsideAddress): Buffer {
  const family = isIPv4(address) ? "ipv4" : isIPv6(address) ? "ipv6" : undefined;
  if (family === undefined || !loopback.check(address, family))
    throw invalid(`${JSON.stringify(address)} is not an address of the sandbox's loopback, as 127.0.0.1 is`);
  if (!Number.isInteger(port) || port < 0 || port > 0xffff) throw invalid(`${port} is not a port`);
  const bytes = Buffer.alloc(ADDRESS_BYTES);
  bytes.writeUInt8(AddressFamily[family], 0);
  bytes.writeUInt16LE(port, 2);
  if (family === "ipv4") Buffer.from(address.split(".").map(Number)).copy(bytes, HOST_AT);
  else bytes.writeUInt8(1, ADDRESS_BYTES - 1);
  return bytes;
}

/** Reads the address that begins at `at`. Error: `protocol.invalid`. */
export function parseAddress(payload: Buffer, at: number): InsideAddress {
  const family = families.get(payload.readUInt8(at));
  const port = payload.readUInt16LE(at + 2);
  const host = payload.subarray(at + HOST_AT, at + ADDRESS_BYTES);
  if (family === undefined) throw protocolError("an address of unknown family");
  if (family === "ipv4") return { address: host.subarray(0, IPV4_BYTES).join("."), port };
  const groups = Array.from({ length: 8 }, (_, i) => host.readUInt16BE(i * 2).toString(16));
  return { address: new SocketAddress({ family, address: groups.join(":") }).address, port };
}

function invalid(message: string): BrigError {
  return new BrigError(message, { code: "usage.invalid" });
}
